/** What each of a run's policies learns in a step: the parts of the step's rollouts that its roles played. */

import { learningPolicies, policyOfRole, type RunConfig } from "@hone/config";
import { type Group, groupsOfRole, type Rollout } from "@hone/rl";

/** The groups from which one policy learns, in the order of their tasks and, within a task, of the roles in the run file. */
export interface Lesson<R extends Rollout> {
  /** The policy's name; undefined = the run's own. */
  readonly policy: string | undefined;
  readonly groups: readonly Group<R>[];
}

/** The roles from whose parts a policy learns. */
interface LearningRoles {
  /** Undefined = the run's own. */
  readonly policy: string | undefined;
  /** In the order of the run file; one that is undefined stands for all that the run does not name. Undefined = rollouts are not parted. */
  readonly roles: readonly (string | undefined)[] | undefined;
}

/** @returns the run's own policy first, and then each further one that is trained. */
export function learningRoles(config: Pick<RunConfig, "policies" | "roles">): LearningRoles[] {
  if (config.roles === undefined) return [{ policy: undefined, roles: undefined }];
  const names = Object.keys(config.roles);
  return [undefined, ...learningPolicies(config).map(({ name }) => name)].map((policy) => {
    const roles: (string | undefined)[] = names.filter((role) => policyOfRole(config, role) === policy);
    // Calls of roles that the run does not name are answered by its own policy.
    if (policy === undefined) roles.push(undefined);
    return { policy, roles };
  });
}

/** The lesson of each policy of {@link learningRoles}. */
export function lessonsOf<R extends Rollout>(
  config: Pick<RunConfig, "policies" | "roles">,
  groups: readonly Group<R>[],
): Lesson<R>[] {
  return learningRoles(config).map(({ policy, roles }) => ({
    policy,
    groups: partsOfRoles(groups, roles, (group, role) => groupsOfRole([group], role)),
  }));
}

/**
 * The parts of groups from which a policy learns, in the order of a {@link Lesson}.
 * @param partOf the part of a group that a role played; none where it played nothing.
 */
export function partsOfRoles<G>(
  groups: readonly G[],
  roles: LearningRoles["roles"],
  partOf: (group: G, role: string | undefined) => readonly G[],
): readonly G[] {
  if (roles === undefined) return groups;
  return groups.flatMap((group) => roles.flatMap((role) => partOf(group, role)));
}
