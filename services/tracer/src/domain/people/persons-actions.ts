/** What a person does from the page beside looking: the course of runs, and rewards that rollouts wait for. */

import type { ScoredEpisode } from "@hone/proto-gen/rollout";

/** What may be asked of a run's trainer. */
export const RUN_ACTIONS = ["pause", "resume", "cancel"] as const;
export type RunAction = (typeof RUN_ACTIONS)[number];

/** A rollout that has ended and waits for rewards. Times are Unix milliseconds by the clock of the bus. */
export interface WaitingRollout {
  readonly slot: string;
  /** Judges of the kind `later` whose reward is missing. */
  readonly judges: readonly string[];
  readonly sinceMs: number;
  /** When its time for rewards is over. */
  readonly untilMs: number;
}

export interface GivenByPerson {
  readonly run: string;
  readonly slot: string;
  /** Empty = the only one that the rollout waits for. */
  readonly judge: string;
  readonly value: number;
  readonly reason: string;
}

type Refused = { readonly kind: "refused"; readonly reason: string };
/** Nobody answered, so it is not known whether it was done. */
type Silent = { readonly kind: "silent"; readonly who: string };

/** Every method throws the errors of @hone/messaging. */
export interface PersonsActions {
  control(run: string, action: RunAction): Promise<{ readonly kind: "done" } | Refused | Silent>;
  /** The rollouts of a run that wait. */
  waiting(run: string): Promise<readonly WaitingRollout[]>;
  /** One of them with its episode; undefined = it does not wait. */
  waitingEpisode(
    run: string,
    slot: string,
  ): Promise<{ readonly waiting: WaitingRollout; readonly scored: ScoredEpisode } | undefined>;
  reward(
    given: GivenByPerson,
  ): Promise<{ readonly kind: "done"; readonly awaited: readonly string[] } | Refused | Silent>;
}
