/**
 * The critic's part of a run's states: the folder `critic` in each that is written with the optimizer.
 *
 * The first is made of the policy's weights of version 0, under a head that expects 0 of everything. Later ones hold what was
 * trained, so that a restart goes on with the same policy and the same critic.
 */

import path from "node:path";
import type { RunContext } from "../run/run-context.ts";
import type { StateFiles } from "../state/state-files.ts";

const CRITIC_FOLDER = "critic";

type CriticContext = Pick<RunContext, "critic">;

/**
 * What writes the critic of a version into the version's folder, in which the policy's weights are already; undefined where
 * the run has none.
 */
export function criticWriter(
  { critic }: CriticContext,
  version: number,
): ((folder: string) => Promise<unknown>) | undefined {
  if (critic === undefined) return undefined;
  return (folder) => {
    const own = path.join(folder, CRITIC_FOLDER);
    return version === 0 ? critic.saveFirst(folder, own) : critic.save(own);
  };
}

/** Gives the critic what a state holds of it; does nothing where the state holds none, as within a warm start. */
export async function loadCritic(
  { critic }: CriticContext,
  folder: string,
  files: StateFiles,
): Promise<void> {
  if (!Object.keys(files).some((name) => name.startsWith(`${CRITIC_FOLDER}/`))) return;
  await critic?.load(path.join(folder, CRITIC_FOLDER));
}
