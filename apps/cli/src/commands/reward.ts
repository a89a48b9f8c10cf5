/**
 * `hone reward RUN ROLLOUT VALUE`: gives a rollout that has ended a reward that its run waits for. Without rollout and value it
 * lists the rollouts that wait.
 */

import { create } from "@bufbuild/protobuf";
import { compareSlots, parseSlotKey, type Slot, slotKey } from "@hone/core";
import {
  type Bus,
  BusUnavailableError,
  openRewardsOf,
  RewardGiver,
  request,
  slotFromWire,
  slotToWire,
  subjects,
} from "@hone/messaging";
import {
  type RewardReply,
  RewardReplySchema,
  RewardRequestSchema,
  RewardResult,
  type RolloutRewards,
} from "@hone/proto-gen/judge";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { span } from "../format.ts";
import type { Session } from "../session.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";
import { table } from "../terminal.ts";

const ANSWER_TIMEOUT_MS = 5_000;

export const rewardCommand = honeCommand({
  name: "reward",
  description: "Give a rollout that has ended the reward that it waits for, or list those that wait",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    rollout: {
      type: "positional",
      required: false,
      description: "The rollout's slot, such as train.3.17.5; without it the rollouts that wait are listed",
      valueHint: "ROLLOUT",
    },
    value: { type: "positional", required: false, description: "The reward, a number", valueHint: "VALUE" },
    name: {
      type: "string",
      description: "The judge that waits for it, where the run has several of the kind later",
      valueHint: "JUDGE",
    },
    reason: { type: "string", description: "Why, in words; kept with the reward", valueHint: "TEXT" },
  },
  run: async (session, { run, rollout, value, name = "", reason = "" }) => {
    const given = rollout === undefined ? undefined : readReward(run, rollout, value);
    const bus = await connectTo(requireStack(session), "reward", session.signal);
    try {
      if (given === undefined) return await listOpen(session, bus, run);
      const reply = await give(bus, { runId: run, ...given, judge: name, reason });
      return print(session, `${run}/${slotKey(given.slot)}`, reply);
    } finally {
      await bus.close();
    }
  },
});

/** @param rollout a slot, or the rollout's whole id with the run before it. */
function readReward(run: string, rollout: string, text: string | undefined): { slot: Slot; value: number } {
  const slot = parseSlotKey(rollout.startsWith(`${run}/`) ? rollout.slice(run.length + 1) : rollout);
  const value = Number(text);
  if (text === undefined || text.trim() === "" || !Number.isFinite(value)) {
    const found = text === undefined ? "none was given" : `"${text}" is none`;
    const example = `hone reward ${run} ${rollout} 1`;
    throw new UsageError(`a reward is a number, and ${found}; write ${example}, and a negative one after --`);
  }
  return { slot, value };
}

interface Reward {
  readonly runId: string;
  readonly slot: Slot;
  readonly judge: string;
  readonly value: number;
  readonly reason: string;
}

async function give(bus: Bus, { slot, ...reward }: Reward): Promise<RewardReply> {
  try {
    return await request(
      bus,
      subjects.judgeReward(RewardGiver.client),
      RewardRequestSchema,
      create(RewardRequestSchema, { ...reward, slot: slotToWire(slot) }),
      RewardReplySchema,
      { timeoutMs: ANSWER_TIMEOUT_MS },
    );
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    throw new UsageError(
      "no judge answered, and the reward may have been stored or not; give the same again, which counts once",
    );
  }
}

function print(
  { terminal }: Session,
  rollout: string,
  { result, standing, awaited, error }: RewardReply,
): number {
  if (result !== RewardResult.TAKEN && result !== RewardResult.REPEATED) throw new UsageError(error);
  const { judge = "", value = 0 } = standing ?? {};
  const words = result === RewardResult.TAKEN ? "was given" : "had already been given";
  const more = awaited.length === 0 ? "" : `; it still waits for ${awaited.join(", ")}`;
  terminal.line(`${rollout} ${words} ${value} for ${judge}${more}`);
  return 0;
}

async function listOpen({ terminal }: Session, bus: Bus, run: string): Promise<number> {
  const { rollouts } = await openRewardsOf(bus, run);
  if (rollouts.length === 0) terminal.line(`no rollout of ${run} waits for rewards`);
  const rows = rollouts
    .map((entry) => ({ entry, slot: slotFromWire(entry.finished?.slot) }))
    .sort((a, b) => compareSlots(a.slot, b.slot))
    .map(({ entry, slot }) => [slotKey(slot), ...waitOf(entry)]);
  for (const line of table(rows)) terminal.line(line);
  return 0;
}

function waitOf({ sinceMs, deadlineMs, awaited, rewards }: RolloutRewards): string[] {
  const given = new Set(rewards.map(({ judge }) => judge));
  const names = awaited.map(({ judge }) => judge).filter((judge) => !given.has(judge));
  const now = Date.now();
  const left = Number(sinceMs + deadlineMs) - now;
  return [
    `waits for ${names.join(", ")}`,
    `since ${span(Math.max(0, now - Number(sinceMs)))}`,
    left > 0 ? `${span(left)} left` : "its deadline has passed",
  ];
}
