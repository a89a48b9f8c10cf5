/** The description of one split's tasks in a run file, and what can be wrong with it. */

import type { TaskSource as SourceSpec } from "@hone/config";

export type { SourceSpec };

/** One thing that is wrong with a run's dataset section. */
export interface SourceProblem {
  /** Key in the run file, such as `dataset.train.seeds.to`. */
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly message: string;
}

/**
 * Checks that a run is not evaluated on tasks that it trains on, which only both sources together show.
 * @returns a problem with the evaluation's seeds, or undefined.
 */
export function overlapOf(train: SourceSpec, evaluation: SourceSpec): SourceProblem | undefined {
  if (train.source !== "environment" || evaluation.source !== "environment") return undefined;
  if (train.environment !== evaluation.environment) return undefined;
  const begin = Math.max(train.seeds.from, evaluation.seeds.from);
  const end = Math.min(train.seeds.to, evaluation.seeds.to);
  if (begin >= end) return undefined;
  const allowed = `seeds outside ${train.seeds.from} to ${train.seeds.to}, which are trained on`;
  return {
    key: "dataset.eval.seeds",
    value: evaluation.seeds,
    allowed,
    message: `dataset.eval shares seeds ${begin} to ${end} with dataset.train, but held-out tasks must not be trained on; give it ${allowed}`,
  };
}
