/**
 * Answers `hone.v1.judge.reward.<giver>`: gives a finished rollout a reward that it waits for.
 *
 * R1: the first reward of a rollout and a judge counts. The same value again changes nothing and is answered as such, also after
 *     the episode was scored; another value is refused with the one that stands.
 * R2: a reward is stored before it is answered, so an answer that is lost costs a repetition and no reward.
 * R3: by a session only the holder of its key may give rewards, and only where the run file says `rewards: session`: entries hold
 *     the digests of no other keys. Clients and people on the page need no key, as they may do with runs what they like.
 */

import { timingSafeEqual } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describeError, RetryableError, rolloutIdOf, type Slot, TerminalError } from "@hone/core";
import { type BucketEntry, RevisionConflictError, RewardGiver, slotFromWire } from "@hone/messaging";
import {
  type GivenReward,
  GivenRewardSchema,
  type RewardReply,
  RewardReplySchema,
  type RewardRequest,
  RewardResult,
  type RolloutRewards,
} from "@hone/proto-gen/judge";
import type { OpenRollouts } from "./open-rollouts.ts";
import { isDecided, missingOf, rewardOf } from "./rollout-rewards.ts";

const MAX_REASON_CHARACTERS = 2_000;
const MAX_CONFLICTS = 20;

/** An answer, and the entry that is now decided by the reward and waits to be published. */
export interface Answered {
  readonly reply: RewardReply;
  readonly decided?: BucketEntry<RolloutRewards>;
}

/** Never rejects. */
export async function answerReward(
  request: RewardRequest,
  giver: RewardGiver,
  rollouts: OpenRollouts,
): Promise<Answered> {
  try {
    const slot = slotFromWire(request.slot);
    const { value, reason } = request;
    if (!Number.isFinite(value))
      return refused(RewardResult.INVALID, `a reward must be a finite number, and not ${value}`);
    if (reason.length > MAX_REASON_CHARACTERS) {
      const most = `at most ${MAX_REASON_CHARACTERS} characters, and not ${reason.length}`;
      return refused(RewardResult.INVALID, `the reason of a reward must have ${most}`);
    }
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await give(request, slot, giver, rollouts);
      } catch (error) {
        if (!(error instanceof RevisionConflictError) || conflicts >= MAX_CONFLICTS) throw error;
      }
    }
  } catch (error) {
    const isTerminal = error instanceof TerminalError && !(error instanceof RetryableError);
    return refused(isTerminal ? RewardResult.INVALID : RewardResult.UNAVAILABLE, describeError(error));
  }
}

async function give(
  request: RewardRequest,
  slot: Slot,
  giver: RewardGiver,
  rollouts: OpenRollouts,
): Promise<Answered> {
  const { runId, value, reason } = request;
  const rollout = rolloutIdOf(runId, slot);
  const found = await rollouts.find(runId, slot);
  if (found === undefined) {
    const why = "it has not ended, waits for none, or its run is over";
    return refused(RewardResult.NOT_OPEN, `the rollout ${rollout} takes no reward: ${why}`);
  }
  const { entry, isScored } = found;
  const notAllowed = giver === RewardGiver.session ? keyProblem(entry.value, request.keyDigest) : undefined;
  if (notAllowed !== undefined) return notAllowed;
  const names = entry.value.awaited.map(({ judge }) => judge);
  const [only, ...others] = names;
  const judge = request.judge === "" && others.length === 0 ? (only ?? "") : request.judge;
  if (!names.includes(judge)) {
    const what =
      judge === "" ? "say for which judge the reward is" : `no judge "${judge}" waits for a reward`;
    return refused(RewardResult.INVALID, `${what}; the rollout's are ${names.join(", ")}`);
  }
  const standing = rewardOf(entry.value.rewards, judge);
  if (standing !== undefined) return again(standing, value, entry.value); // R1
  if (isScored || isDecided(entry.value)) {
    const error = `the rollout ${rollout} takes no reward any more: its deadline has passed`;
    return refused(RewardResult.EXPIRED, error);
  }
  const given = create(GivenRewardSchema, {
    judge,
    value,
    reason,
    givenAtMs: BigInt(Date.now()),
    givenBy: giver,
  });
  const changed = await rollouts.change(entry, { rewards: [...entry.value.rewards, given] }); // R2
  const reply = create(RewardReplySchema, {
    result: RewardResult.TAKEN,
    standing: given,
    awaited: missingOf(changed.value).map((each) => each.judge),
  });
  return isDecided(changed.value) ? { reply, decided: changed } : { reply };
}

/** R3 */
function keyProblem({ sessionKeyDigests }: RolloutRewards, digest: Uint8Array): Answered | undefined {
  if (sessionKeyDigests.length === 0) {
    const error =
      "rewards from the session are not accepted; set `agent.rewards: session` in the run file to allow them";
    return refused(RewardResult.NOT_ALLOWED, error);
  }
  const isKnown = sessionKeyDigests.some(
    (known) => known.length === digest.length && timingSafeEqual(known, digest),
  );
  return isKnown
    ? undefined
    : refused(RewardResult.WRONG_KEY, "the key is not that of the rollout's session");
}

function again(standing: GivenReward, value: number, entry: RolloutRewards): Answered {
  const awaited = missingOf(entry).map(({ judge }) => judge);
  if (standing.value === value)
    return { reply: create(RewardReplySchema, { result: RewardResult.REPEATED, standing, awaited }) };
  const error = `the judge "${standing.judge}" was given ${standing.value} before, which stands`;
  return { reply: create(RewardReplySchema, { result: RewardResult.STANDS, standing, awaited, error }) };
}

function refused(result: RewardResult, error: string): Answered {
  return { reply: create(RewardReplySchema, { result, error }) };
}
