/** Who plays the roles of a rollout: what its job says of them. */

import { earlierPolicies, policyOfRole } from "@hone/config";
import { modelIdOf } from "@hone/core";
import type { Job } from "../rollouts/jobs.ts";
import type { RunRecord } from "../run/run-record.ts";
import { earlierModel, earlierVersionFor } from "./earlier-versions.ts";

/** One role, and the model that answers its calls. */
export interface RolePlayer {
  readonly role: string;
  readonly model: string;
  /** Whether its tokens are trained. */
  readonly isLearning: boolean;
  readonly lowestVersion: number;
  readonly highestVersion: number;
}

/** @returns one for each role that the run names, in the order of the file. */
export function rolePlayers(
  { runId, config }: Pick<RunRecord, "runId" | "config">,
  { slot, lowestVersion, highestVersion }: Pick<Job, "slot" | "lowestVersion" | "highestVersion">,
): RolePlayer[] {
  const earlier = new Map(earlierPolicies(config).map((policy) => [policy.name, policy]));
  return Object.keys(config.roles ?? {}).map((role): RolePlayer => {
    const name = policyOfRole(config, role);
    const versions = { lowestVersion, highestVersion };
    if (name === undefined) return { role, model: runId, isLearning: true, ...versions };
    const policy = earlier.get(name);
    if (policy === undefined) return { role, model: modelIdOf(runId, name), isLearning: true, ...versions };
    const version = earlierVersionFor({ config }, policy, slot, highestVersion);
    const model = earlierModel(runId, policy, version);
    return { role, model, isLearning: false, lowestVersion: version, highestVersion: version };
  });
}
