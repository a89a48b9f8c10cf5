/** Passes rewards that come through the URL of a session that has ended on to the judge, which keeps them and knows the keys. */

import { create } from "@bufbuild/protobuf";
import { delay, parseJson } from "@hone/core";
import {
  type Bucket,
  BucketName,
  type Bus,
  BusUnavailableError,
  openBucket,
  RewardGiver,
  request,
  slotToWire,
  subjects,
} from "@hone/messaging";
import {
  type RewardReply,
  RewardReplySchema,
  RewardRequestSchema,
  RewardResult,
} from "@hone/proto-gen/judge";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import { LaterRewardRefusedError, SessionOverError } from "../domain/sessions/errors.ts";
import type { LaterReward, LaterRewards, TakenReward } from "../domain/sessions/later-rewards.ts";
import { keyDigest } from "../domain/sessions/session-id.ts";

const ANSWER_TIMEOUT_MS = 5_000;
/** The judge knows an episode within milliseconds of its end, or of its own restart. */
const PATIENCE_MS = 5_000;
const LOOK_AGAIN_MS = 100;
/** More than the number of runs that are active at the same time. */
const MAX_RUNS = 256;

export class BusLaterRewards implements LaterRewards {
  readonly #bus: Bus;
  readonly #states: Bucket<RunState>;
  /** Whether a run's rollouts wait for rewards; a run's file never changes. */
  readonly #waits = new Map<string, boolean>();

  private constructor(bus: Bus, states: Bucket<RunState>) {
    this.#bus = bus;
    this.#states = states;
  }

  static async open(bus: Bus): Promise<BusLaterRewards> {
    return new BusLaterRewards(bus, await openBucket(bus, BucketName.runState, RunStateSchema));
  }

  async isAwaitedIn(runId: string): Promise<boolean> {
    const known = this.#waits.get(runId);
    if (known !== undefined) return known;
    const state = (await this.#states.get(runId))?.value;
    if (state === undefined) return false;
    const { rollout } = Object(parseJson(state.configJson)) as { rollout?: { rewardDeadlineMs?: unknown } };
    const waits = rollout?.rewardDeadlineMs !== undefined;
    this.#waits.set(runId, waits);
    for (const oldest of this.#waits.keys()) {
      if (this.#waits.size <= MAX_RUNS) break;
      this.#waits.delete(oldest);
    }
    return waits;
  }

  async give(sessionId: string, reward: LaterReward): Promise<TakenReward> {
    const giveUpAt = performance.now() + PATIENCE_MS;
    for (;;) {
      const reply = await this.#ask(reward);
      if (reply.result !== RewardResult.NOT_OPEN) return takenOf(reply);
      if (performance.now() >= giveUpAt) throw new SessionOverError(sessionId);
      await delay(LOOK_AGAIN_MS);
    }
  }

  #ask({ runId, slot, key, value, name = "", reason = "" }: LaterReward): Promise<RewardReply> {
    return request(
      this.#bus,
      subjects.judgeReward(RewardGiver.session),
      RewardRequestSchema,
      create(RewardRequestSchema, {
        runId,
        slot: slotToWire(slot),
        judge: name,
        value,
        reason,
        keyDigest: keyDigest(key),
      }),
      RewardReplySchema,
      { timeoutMs: ANSWER_TIMEOUT_MS },
    );
  }
}

function takenOf({ result, standing, awaited, error }: RewardReply): TakenReward {
  switch (result) {
    case RewardResult.TAKEN:
    case RewardResult.REPEATED: {
      const { judge: name = "", value = 0 } = standing ?? {};
      return { name, value, isRepeated: result === RewardResult.REPEATED, awaited };
    }
    case RewardResult.STANDS:
      throw new LaterRewardRefusedError(error, 409, "reward_stands");
    case RewardResult.EXPIRED:
      throw new LaterRewardRefusedError(error, 409, "reward_too_late");
    case RewardResult.NOT_ALLOWED:
      throw new LaterRewardRefusedError(error, 403, "rewards_not_taken");
    case RewardResult.WRONG_KEY:
      throw new LaterRewardRefusedError(error, 401, "invalid_api_key");
    case RewardResult.INVALID:
      throw new LaterRewardRefusedError(error, 400, "invalid_reward");
    default:
      throw new BusUnavailableError("store a reward", subjects.judgeReward(RewardGiver.session), {
        cause: new Error(error),
      });
  }
}
