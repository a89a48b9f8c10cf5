/** Rewards that come through a session's URL after its attempt has ended. */

import type { SessionRollout } from "./session-id.ts";

export interface LaterReward extends SessionRollout {
  /** The session's key, as the request shows it. */
  readonly key: string;
  readonly value: number;
  /** Name of the judge that waits for it; undefined = the only one. */
  readonly name: string | undefined;
  readonly reason: string | undefined;
}

/** What is known of a reward that counts. */
export interface TakenReward {
  readonly name: string;
  readonly value: number;
  /** Whether it was given before already. */
  readonly isRepeated: boolean;
  /** Names of the judges whose rewards are still awaited. */
  readonly awaited: readonly string[];
}

export interface LaterRewards {
  /** Whether the run file says that rollouts of the run wait for rewards. @throws {RetryableError} when the bus does not answer. */
  isAwaitedIn(runId: string): Promise<boolean>;
  /**
   * Gives a rollout that has ended a reward.
   * @throws {LaterRewardRefusedError} when it is not taken.
   * @throws {SessionOverError} when the rollout waits for none.
   * @throws {RetryableError} when the judge does not answer.
   */
  give(sessionId: string, reward: LaterReward): Promise<TakenReward>;
}
