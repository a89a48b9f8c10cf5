/**
 * Earlier versions of a policy, as which a role plays: opponents that do not learn, but get better as the policy does.
 *
 * E1: The versions are the multiples of `every`, and the latest `size` of them are played. Which one a task is played with
 *     follows from the run's seed and the task alone, so a repeated rollout, a restart and another run of the file play with
 *     the same one.
 * E2: The weights of a version are kept before the version is published, and as long as they are played. Where an owner dies
 *     in between, the next one keeps them: the committed state is still there.
 * E3: Version v has the place (v / every) mod size: a replica replaces the oldest version by the newest.
 */

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { type EarlierConfig, earlierPolicies } from "@hone/config";
import { deriveSeed, modelIdOf, type Slot } from "@hone/core";
import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import type { RunRecord } from "../run/run-record.ts";
import { linkOrCopy } from "../state/link-or-copy.ts";
import type { StateFiles } from "../state/state-files.ts";
import { policyFolder, weightsDigest } from "./learner-state.ts";

/** SHA-256 of the weights, beside them. */
const DIGEST_FILE = "digest.txt";

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

/** The model under which replicas serve a version (E3). */
export function earlierModel(runId: string, { name, every, size }: Named, version: number): string {
  return modelIdOf(runId, name, (version / every) % size);
}

/**
 * Keeps the weights of a committed version that will be played, and removes those that are not played any more (E2).
 * @param state the committed state's folder, relative to the state folder.
 */
export async function keepEarlier(
  { run, folders, reporter }: Pick<RunContext, "run" | "folders" | "reporter">,
  version: number,
  state: { readonly folder: string; readonly files: StateFiles },
): Promise<void> {
  for (const policy of earlierPolicies(run.config)) {
    const kept = folders.earlier(policy.name, version);
    if (version % policy.every === 0) {
      const below = policy.of === undefined ? "" : policyFolder(policy.of);
      const names = Object.keys(state.files).filter((name) => isOfPolicy(name, below));
      await reporter.untilAvailable(diskWait(kept), () =>
        folders.writeEarlier(policy.name, version, run.epoch, async (unfinished) => {
          const digest = weightsDigest(state.files, below) ?? "";
          await writeFile(path.join(unfinished, DIGEST_FILE), digest);
          for (const name of names) {
            const target = path.join(unfinished, name);
            await mkdir(path.dirname(target), { recursive: true });
            await linkOrCopy(path.join(folders.absolute(state.folder), name), target);
          }
        }),
      );
    }
    const played = earlierVersions(policy, version);
    await reporter.untilAvailable(diskWait(kept), async () => {
      for (const old of await folders.earlierVersions(policy.name)) {
        if (old > version || played.includes(old)) continue;
        await rm(folders.absolute(folders.earlier(policy.name, old)), { recursive: true, force: true });
      }
    });
  }
}

/** SHA-256 of the weights of a version that is kept. */
export function earlierDigest(
  { folders, reporter }: Pick<RunContext, "folders" | "reporter">,
  policy: string,
  version: number,
): Promise<string> {
  const folder = folders.earlier(policy, version);
  return reporter.untilAvailable(diskWait(folder), () =>
    folders.using(folder, () => readFile(path.join(folders.absolute(folder), DIGEST_FILE), "utf8")),
  );
}

/** Whether a file of a state belongs to the weights of a policy. @param below the policy's folder; empty = the run's own. */
function isOfPolicy(name: string, below: string): boolean {
  return (
    path.posix.dirname(name) === (below === "" ? "." : below) && !/^optimizer/.test(path.posix.basename(name))
  );
}
