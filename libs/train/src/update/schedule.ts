/** Learning-rate schedules: pure functions of the update's number. */
import { unreachable } from "@hone/core";

/** How the rate changes after the warm-up. */
export type DecayKind = "constant" | "linear" | "cosine";

export interface ScheduleConfig {
  readonly kind: DecayKind;
  /** The highest rate. */
  readonly learningRate: number;
  /** Number of updates in which the rate rises in equal steps to the highest rate; 0 = it starts at the highest rate. */
  readonly warmupUpdates: number;
  /** The update at which the decay ends; not used by `constant`. */
  readonly totalUpdates: number;
  /** The rate at the end, as a fraction of the highest rate. */
  readonly finalFraction: number;
}

/** The rate of update number `update`, counted from 0. */
export function learningRateAt(config: ScheduleConfig, update: number): number {
  const { kind, learningRate, warmupUpdates, totalUpdates, finalFraction } = config;
  if (update < warmupUpdates) return (learningRate * (update + 1)) / warmupUpdates;
  const length = Math.max(1, totalUpdates - warmupUpdates);
  const progress = Math.min(1, (update - warmupUpdates) / length);
  const between = (part: number) => learningRate * (finalFraction + (1 - finalFraction) * part);
  switch (kind) {
    case "constant":
      return learningRate;
    case "linear":
      return between(1 - progress);
    case "cosine":
      return between((1 + Math.cos(Math.PI * progress)) / 2);
    default:
      return unreachable(kind);
  }
}
