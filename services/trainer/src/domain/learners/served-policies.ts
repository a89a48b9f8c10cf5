/** The further policies of a run as replicas are to serve them with a version, for its published state. */

import path from "node:path";
import { earlierPolicies, learningPolicies } from "@hone/config";
import { modelIdOf } from "@hone/core";
import type { ServedPolicy } from "../report/run-status.ts";
import type { RunContext } from "../run/run-context.ts";
import type { StateFiles } from "../state/state-files.ts";
import { earlierDigest, earlierModel, earlierVersions } from "./earlier-versions.ts";
import { policyFolder, weightsDigest } from "./learner-state.ts";

/** @param state the version's committed state, with its folder relative to the state folder. */
export async function servedPolicies(
  context: Pick<RunContext, "run" | "folders" | "reporter">,
  version: number,
  state: { readonly folder: string; readonly files: StateFiles },
): Promise<ServedPolicy[]> {
  const { run, folders } = context;
  const learning = learningPolicies(run.config).map(({ name }) => ({
    model: modelIdOf(run.runId, name),
    version,
    location: path.posix.join(state.folder, policyFolder(name)),
    digest: weightsDigest(state.files, policyFolder(name)) ?? "",
  }));
  const earlier: ServedPolicy[] = [];
  for (const policy of earlierPolicies(run.config)) {
    const below = policy.of === undefined ? "" : policyFolder(policy.of);
    for (const each of earlierVersions(policy, version)) {
      earlier.push({
        model: earlierModel(run.runId, policy, each),
        version: each,
        location: path.posix.join(folders.earlier(policy.name, each), below),
        digest: await earlierDigest(context, policy.name, each),
      });
    }
  }
  return [...learning, ...earlier];
}
