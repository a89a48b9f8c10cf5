/**
 * The part of a run's states that its further policies have: `policies/<name>/` in every state, with the weights, and with the
 * optimizer where the state has that of the run's own policy.
 *
 * The first is made of the weights of version 0 of the run's own policy, or of the policy's own model, with a fresh optimizer.
 * All policies are committed together, so that a restart goes on with the same version of each.
 */

import path from "node:path";
import { learningPolicies } from "@hone/config";
import { modelIdOf } from "@hone/core";
import type { ServedPolicy } from "../report/run-status.ts";
import type { RunRecord } from "../run/run-record.ts";
import { policyFolder, type StateFiles, weightsDigest } from "../state/state-files.ts";
import type { Learner } from "./learner.ts";

/**
 * What writes the learners of a version into the version's folder, in which the weights of the run's own policy are already.
 * @param isWhole whether their optimizers are written, too.
 */
export function learnersWriter(
  learners: readonly Learner[],
  version: number,
  isWhole: boolean,
): (folder: string) => Promise<void> {
  return async (folder) => {
    for (const { name, engine, from } of learners) {
      if (version === 0) await begin(engine, from, folder);
      const own = path.join(folder, policyFolder(name));
      await (isWhole ? engine.save(own) : engine.saveWeights(own));
    }
  };
}

async function begin(engine: Learner["engine"], from: string | undefined, folder: string): Promise<void> {
  if (from !== undefined) {
    await engine.initialise();
    return;
  }
  await engine.load(folder);
  // The moments in the folder are those of the warm start.
  await engine.resetOptimizer();
}

/** Gives the learners what a state holds of them; does nothing where it holds none, as within a warm start. */
export async function loadLearners(
  learners: readonly Learner[],
  folder: string,
  files: StateFiles,
): Promise<void> {
  for (const { name, engine } of learners) {
    const own = policyFolder(name);
    if (!Object.keys(files).some((file) => file.startsWith(`${own}/`))) continue;
    await engine.load(path.join(folder, own));
  }
}

/**
 * The learners as replicas are to serve them with a version.
 * @param state the committed state, with its folder relative to the state folder.
 */
export function servedLearners(
  { runId, config }: Pick<RunRecord, "runId" | "config">,
  version: number,
  state: { readonly folder: string; readonly files: StateFiles },
): ServedPolicy[] {
  return learningPolicies(config).map(({ name }) => ({
    model: modelIdOf(runId, name),
    version,
    location: path.posix.join(state.folder, policyFolder(name)),
    digest: weightsDigest(state.files, policyFolder(name)) ?? "",
  }));
}
