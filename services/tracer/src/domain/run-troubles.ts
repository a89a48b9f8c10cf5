/** What went wrong in the most recent rollouts of a run, from its published state. */

import type { RolloutTroubles } from "@hone/proto-gen/run";
import { storable } from "./run-event.ts";

export interface RunTroubles {
  /** What the rollouts were made for, such as "step 3". */
  readonly madeFor: string;
  readonly rollouts: number;
  readonly outcomes: ReadonlyArray<{
    readonly outcome: string;
    readonly count: number;
    readonly reason: string;
    readonly reasonCount: number;
  }>;
  /** Tools of which every call failed. */
  readonly tools: ReadonlyArray<{ readonly name: string; readonly calls: number; readonly error: string }>;
}

/** The trainer sends at most this; another client of the bus may send more. */
const MAX_CHARACTERS = 400;
const MAX_ITEMS = 16;

/** Reads the troubles of a state and limits their size, as any client of the bus can write a state. */
export function runTroublesOf({ madeFor, rollouts, outcomes, tools }: RolloutTroubles): RunTroubles {
  return {
    madeFor: textOf(madeFor),
    rollouts,
    outcomes: outcomes.slice(0, MAX_ITEMS).map(({ outcome, count, reason, reasonCount }) => ({
      outcome: textOf(outcome),
      count,
      reason: textOf(reason),
      reasonCount,
    })),
    tools: tools
      .slice(0, MAX_ITEMS)
      .map(({ name, calls, error }) => ({ name: textOf(name), calls, error: textOf(error) })),
  };
}

function textOf(text: string): string {
  return storable(text.slice(0, MAX_CHARACTERS));
}
