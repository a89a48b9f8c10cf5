/**
 * The part of a run's states that its further policies have: `policies/<name>/` in every state, with the weights, and with the
 * optimizer where the state has that of the run's own policy.
 *
 * The first is made of the weights of version 0 of the run's own policy, or of the policy's own model, with a fresh optimizer.
 * All policies are committed together, so that a restart goes on with the same version of each.
 */

import path from "node:path";
import { type StateFiles, WEIGHTS_FILES } from "../state/state-files.ts";
import type { Learner } from "./learner.ts";

const POLICIES_FOLDER = "policies";

/** The folder of a further policy within a state, or in a checkpoint. */
export function policyFolder(name: string): string {
  return path.posix.join(POLICIES_FOLDER, name);
}

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
 * SHA-256 of the weights in a folder of a state.
 * @param below the folder within the state; empty = the state itself.
 */
export function weightsDigest(files: StateFiles, below: string): string | undefined {
  const digests = WEIGHTS_FILES.map((name) => files[path.posix.join(below, name)]);
  return digests.find((digest) => digest !== undefined);
}
