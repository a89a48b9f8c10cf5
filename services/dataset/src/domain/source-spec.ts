/** What a run file says of one split's tasks. */

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
 * What no single source shows: a run must not be evaluated on the tasks that it trains on.
 * @returns at most one problem, at the evaluation's seeds.
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
    message: `Cannot evaluate as held-out seeds must not be trained on: current value shares seeds ${begin} to ${end} with dataset.train`,
  };
}
