/** The figures of single roles, where the run names roles. */

import type { RunConfig } from "@hone/config";
import {
  addRolloutMetrics,
  MetricSet,
  type OutcomeRules,
  partOfRole,
  Reduction,
  type Rollout,
} from "@hone/rl";

/** Of a rollout's figures, those that differ between its roles. */
const OF_ROLES = /^(?:reward|judge|tokens)\//;

/** Adds `role/<role>/<figure>` for each role that the run names, over the rollouts in which it played: what it earned and wrote. */
export function addRoleMetrics(
  metrics: MetricSet,
  { roles = {} }: Pick<RunConfig, "roles">,
  rollouts: readonly Rollout[],
  outcomes: OutcomeRules,
): void {
  for (const role of Object.keys(roles)) {
    const own = new MetricSet();
    addRolloutMetrics(
      own,
      rollouts.filter((rollout) => hasPlayed(rollout, role)).map((rollout) => partOfRole(rollout, role)),
      outcomes,
    );
    for (const [name, value] of Object.entries(own.toRecord())) {
      if (OF_ROLES.test(name)) metrics.add(`role/${role}/${name}`, Reduction.last, value);
    }
  }
}

/** An earlier version has no samples, but its agent says what it earned. */
function hasPlayed({ samples, scores }: Rollout, role: string): boolean {
  return (
    samples.some((sample) => sample.role === role) ||
    scores.some(({ roleValues = {} }) => roleValues[role] !== undefined)
  );
}
