/** The names of a run's phases. */

import { RunPhase as WirePhase } from "@hone/proto-gen/run";

const WORDS = {
  UNSPECIFIED: "waiting",
  WAITING: "waiting",
  WARM_START: "warm_start",
  ROLLOUT: "rollout",
  TRAIN: "train",
  COMMIT: "commit",
  EVALUATE: "evaluate",
  PAUSED: "paused",
  COMPLETED: "completed",
  FAILED: "failed",
  CANCELLED: "cancelled",
} as const satisfies Record<keyof typeof WirePhase, string>;

export type RunPhase = (typeof WORDS)[keyof typeof WORDS];

const BY_NUMBER: ReadonlyMap<number, RunPhase> = new Map(
  Object.entries(WORDS).map(([name, word]) => [WirePhase[name as keyof typeof WirePhase], word]),
);

/** The name of a phase; an unknown phase, as a newer version may send, is "waiting". */
export function phaseWord(phase: WirePhase): RunPhase {
  return BY_NUMBER.get(phase) ?? "waiting";
}
