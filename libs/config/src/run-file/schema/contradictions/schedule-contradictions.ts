/** Checks a schedule of the learning rate, of which each policy and each critic may have its own. */

import type { RunConfig } from "../schema.ts";
import type { Contradiction } from "./contradiction.ts";

export function* ofSchedule(
  schedule: RunConfig["trainer"]["optimizer"]["schedule"],
  steps: number,
  path: PropertyKey[],
): Generator<Contradiction> {
  if (schedule.warmupSteps > steps) {
    yield { path: [...path, "warmupSteps"], allowed: `at most trainer.steps (${steps})` };
  }
  if (schedule.kind === "constant" && schedule.finalRatio !== 0) {
    yield {
      path: [...path, "finalRatio"],
      allowed: 'left out where the schedule is "constant", which ignores it',
    };
  }
}
