/**
 * Keeps the weights of the earlier versions that a run plays with, in `runs/<run>/earlier/<policy>-<version>/`.
 *
 * K1: The weights of a version are kept before the version is published, and as long as they are played. Where an owner dies
 *     in between, the next one keeps them: the committed state is still there.
 */

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { earlierPolicies } from "@hone/config";
import type { ServedPolicy } from "../report/run-status.ts";
import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { linkOrCopy } from "../state/link-or-copy.ts";
import { policyFolder, type StateFiles, weightsDigest } from "../state/state-files.ts";
import { earlierModel, earlierVersions } from "./earlier-versions.ts";

/** SHA-256 of the weights, beside them. */
const DIGEST_FILE = "digest.txt";

/**
 * Keeps the weights of a committed version that will be played, and removes those that are not played any more.
 * @param state the committed state, with its folder relative to the state folder.
 * @returns the versions that replicas are to serve with this one.
 */
export async function keepEarlier(
  context: Pick<RunContext, "run" | "folders" | "reporter">,
  version: number,
  state: { readonly folder: string; readonly files: StateFiles },
): Promise<ServedPolicy[]> {
  const { run, folders, reporter } = context;
  const served: ServedPolicy[] = [];
  for (const policy of earlierPolicies(run.config)) {
    const kept = folders.earlier(policy.name, version);
    const below = policy.of === undefined ? "" : policyFolder(policy.of);
    if (version % policy.every === 0) {
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
    for (const each of played) {
      served.push({
        model: earlierModel(run.runId, policy, each),
        version: each,
        location: path.posix.join(folders.earlier(policy.name, each), below),
        digest: await earlierDigest(context, policy.name, each),
      });
    }
  }
  return served;
}

/** SHA-256 of the weights of a version that is kept. */
function earlierDigest(
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
