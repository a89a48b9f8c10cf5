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

/** Adds `role/<role>/<figure>` for each role that the run names: what it earned, and how much it wrote. */
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
      rollouts.map((rollout) => partOfRole(rollout, role)),
      outcomes,
    );
    for (const [name, value] of Object.entries(own.toRecord())) {
      if (OF_ROLES.test(name)) metrics.add(`role/${role}/${name}`, Reduction.last, value);
    }
  }
}
