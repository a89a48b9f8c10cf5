/** Checks that judges which wait for later rewards and the time that they wait for them are given together. */

import type { JudgeConfig } from "../judges.ts";
import type { RunConfig } from "../schema.ts";
import { taskPartsOf } from "../task-parts.ts";
import type { Contradiction } from "./contradiction.ts";

/** The judges of the run, and those that parts of its tasks have of their own, with their paths. */
export function* laterContradictions(
  run: Pick<RunConfig, "dataset" | "judge" | "rollout">,
): Generator<Contradiction> {
  const ofParts = taskPartsOf(run).flatMap(({ path, part }) =>
    part?.judge === undefined ? [] : [{ path: [...path.slice(0, -1), "judge"], judges: part.judge }],
  );
  const lists = [{ path: ["judge"] as PropertyKey[], judges: run.judge }, ...ofParts];
  let hasLater = false;
  for (const { path, judges } of lists) {
    const seen = new Set<string>();
    for (const [index, judge] of judges.entries()) {
      if (judge.kind !== "later") continue;
      hasLater = true;
      if (run.rollout.rewardDeadlineMs === undefined) {
        const allowed = 'another kind where rollout.rewardDeadlineMs is left out, as "later" waits that long';
        yield { path: [...path, index, "kind"], allowed };
      }
      const name = nameOf(judge);
      if (seen.has(name)) {
        const allowed = `another name than "${name}", as rewards are given to judges of the kind "later" by name`;
        yield { path: [...path, index, "name"], allowed };
      }
      seen.add(name);
    }
  }
  if (run.rollout.rewardDeadlineMs !== undefined && !hasLater) {
    const allowed = 'left out where no judge is of the kind "later", as nothing else waits for rewards';
    yield { path: ["rollout", "rewardDeadlineMs"], allowed };
  }
}

function nameOf({ kind, name = kind }: JudgeConfig): string {
  return name;
}
