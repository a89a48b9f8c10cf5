/**
 * Earlier versions of a policy, as which a role plays: opponents that do not learn, but get better as the policy does.
 *
 * E1: The versions are the multiples of `every`, and the latest `size` of them are played. Which one a task is played with
 *     follows from the run's seed and the task alone, so a repeated rollout, a restart and another run of the file play with
 *     the same one.
 * E2: Version v has the place (v / every) mod size: a replica replaces the oldest version by the newest.
 */

import type { EarlierConfig } from "@hone/config";
import { deriveSeed, modelIdOf, type Slot } from "@hone/core";
import type { RunRecord } from "../run/run-record.ts";

type Named = EarlierConfig & { readonly name: string };

/** The versions that are played while a version is the newest, ascending (E1). */
export function earlierVersions({ every, size }: EarlierConfig, newest: number): number[] {
  const last = Math.floor(newest / every);
  const count = Math.min(size, last + 1);
  return Array.from({ length: count }, (_, i) => (last - count + 1 + i) * every);
}

/** The version that a task is played with (E1). @param newest the version of the policies that learn. */
export function earlierVersionFor(
  { config }: Pick<RunRecord, "config">,
  policy: Named,
  { split, step, task }: Slot,
  newest: number,
): number {
  const versions = earlierVersions(policy, newest);
  const chosen = deriveSeed(config.seed, "earlier", policy.name, split, step, task) % versions.length;
  return versions[chosen]!;
}

/** The model under which replicas serve a version (E2). */
export function earlierModel(runId: string, { name, every, size }: Named, version: number): string {
  return modelIdOf(runId, name, (version / every) % size);
}
