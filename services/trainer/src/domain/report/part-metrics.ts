/** The figures of a run with several kinds of tasks, by kind: the parts of a mix, or the data sources of its rows. */

import {
  addEvaluationMetrics,
  addRolloutMetrics,
  MetricSet,
  type OutcomeRules,
  type PassRule,
  Reduction,
  type Rollout,
} from "@hone/rl";
import { type DescribedTask, kindOf } from "../rollouts/task-fields.ts";

/** More kinds than a table of figures shows; the data sources of rows may be any number of texts. */
const MAX_KINDS = 64;

/** A task with its rollouts. */
export interface PlayedTask {
  readonly task: DescribedTask & { readonly part: string };
  readonly rollouts: readonly Rollout[];
}

export interface PartMetricOptions {
  readonly outcomes: OutcomeRules;
  /** For an evaluation. */
  readonly pass?: PassRule;
}

/**
 * Adds `part/<kind>/<figure>` for each kind of tasks, with the figures that a step or an evaluation has as a whole, and
 * `part/<kind>/groups`, the number of its tasks. Tasks of one kind without a part's name add nothing.
 */
export function addPartMetrics(
  metrics: MetricSet,
  played: readonly PlayedTask[],
  { outcomes, pass }: PartMetricOptions,
): void {
  const kinds = Map.groupBy(played, ({ task }) => nameOf(task));
  const isOneKind = kinds.size === 1 && played[0]?.task.part === "";
  if (isOneKind || kinds.size > MAX_KINDS) return;
  // By name, so that the order in which tasks were drawn cannot show.
  for (const kind of [...kinds.keys()].sort()) {
    const tasks = (kinds.get(kind) ?? []).map(({ rollouts }) => rollouts);
    const own = new MetricSet();
    own.add("groups", Reduction.sum, tasks.length);
    addRolloutMetrics(own, tasks.flat(), outcomes);
    if (pass !== undefined) addEvaluationMetrics(own, tasks, outcomes, pass);
    for (const [name, value] of Object.entries(own.toRecord())) {
      metrics.add(`part/${kind}/${name}`, Reduction.last, value);
    }
  }
}

function nameOf(task: PlayedTask["task"]): string {
  return kindOf(task) || "other";
}
