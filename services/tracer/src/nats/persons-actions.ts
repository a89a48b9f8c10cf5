/** What the page may ask of the trainer and the judge on behalf of a person: the course of a run, and rewards that are awaited. */

import { create, toBinary } from "@bufbuild/protobuf";
import { parseSlotKey, slotKey } from "@hone/core";
import {
  type Bus,
  BusUnavailableError,
  openRewardsOf,
  RewardGiver,
  type RunControl,
  request,
  slotFromWire,
  slotToWire,
  subjects,
  wholeEpisode,
} from "@hone/messaging";
import {
  RewardReplySchema,
  RewardRequestSchema,
  RewardResult,
  type RolloutRewards,
} from "@hone/proto-gen/judge";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { ControlReplySchema, ControlRequestSchema } from "@hone/proto-gen/run";
import type { PersonsActions, WaitingRollout } from "../domain/people/persons-actions.ts";

const ANSWER_TIMEOUT_MS = 5_000;

export function personsActions(bus: Bus): PersonsActions {
  return {
    async control(run, action) {
      const reply = await answerOf("the trainer", () =>
        request(
          bus,
          subjects.runControl(action satisfies RunControl, run),
          ControlRequestSchema,
          create(ControlRequestSchema, { runId: run }),
          ControlReplySchema,
          { timeoutMs: ANSWER_TIMEOUT_MS },
        ),
      );
      if (reply.kind === "silent") return reply;
      return reply.value.error === "" ? { kind: "done" } : { kind: "refused", reason: reply.value.error };
    },

    async waiting(run) {
      const { rollouts } = await openRewardsOf(bus, run);
      return rollouts.map(waitingOf);
    },

    async waitingEpisode(run, slot) {
      const { rollouts } = await openRewardsOf(bus, run);
      const entry = rollouts.find(({ finished }) => slotKey(slotFromWire(finished?.slot)) === slot);
      if (entry?.finished === undefined) return undefined;
      const pointer = create(ScoredEpisodeSchema, { finished: entry.finished, scores: entry.scores });
      const { message } = await wholeEpisode(
        bus,
        toBinary(ScoredEpisodeSchema, pointer),
        subjects.rolloutScored(run),
      );
      return { waiting: waitingOf(entry), scored: message };
    },

    async reward({ run, slot, judge, value, reason }) {
      const reply = await answerOf("the judge", () =>
        request(
          bus,
          subjects.judgeReward(RewardGiver.page),
          RewardRequestSchema,
          create(RewardRequestSchema, {
            runId: run,
            slot: slotToWire(parseSlotKey(slot)),
            judge,
            value,
            reason,
          }),
          RewardReplySchema,
          { timeoutMs: ANSWER_TIMEOUT_MS },
        ),
      );
      if (reply.kind === "silent") return reply;
      const { result, error, awaited } = reply.value;
      const isTaken = result === RewardResult.TAKEN || result === RewardResult.REPEATED;
      return isTaken ? { kind: "done", awaited } : { kind: "refused", reason: error };
    },
  };
}

type Answer<Value> =
  | { readonly kind: "answered"; readonly value: Value }
  | { readonly kind: "silent"; readonly who: string };

async function answerOf<Value>(who: string, ask: () => Promise<Value>): Promise<Answer<Value>> {
  try {
    return { kind: "answered", value: await ask() };
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    return { kind: "silent", who };
  }
}

function waitingOf({ finished, sinceMs, deadlineMs, awaited, rewards }: RolloutRewards): WaitingRollout {
  const given = new Set(rewards.map(({ judge }) => judge));
  return {
    slot: slotKey(slotFromWire(finished?.slot)),
    judges: awaited.map(({ judge }) => judge).filter((judge) => !given.has(judge)),
    sinceMs: Number(sinceMs),
    untilMs: Number(sinceMs + deadlineMs),
  };
}
