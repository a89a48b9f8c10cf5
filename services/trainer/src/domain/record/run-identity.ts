/** By what a run is compared with others in its ledger: its settings and its tokenizer, as digests. */

import path from "node:path";
import { canonicalJson, settingsDigest, sha256 } from "@hone/rl";
import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { digestOfFile, namesOfFiles } from "../state/state-files.ts";
import type { RunIdentity } from "./chained-parts.ts";

/** Neither changes while a run is held, and a tokenizer has megabytes. */
const known = new WeakMap<RunContext["run"], Promise<RunIdentity>>();

export function identityOf(context: Pick<RunContext, "run" | "folders" | "reporter">): Promise<RunIdentity> {
  const { run } = context;
  const found = known.get(run) ?? readIdentity(context);
  known.set(run, found);
  found.catch(() => known.delete(run));
  return found;
}

async function readIdentity({
  run,
  folders,
  reporter,
}: Pick<RunContext, "run" | "folders" | "reporter">): Promise<RunIdentity> {
  const folder = folders.absolute(folders.tokenizer);
  const files = await reporter.untilAvailable(diskWait(folders.tokenizer), async () => {
    const names = await namesOfFiles(folder);
    return Promise.all(names.map(async (name) => [name, await digestOfFile(path.join(folder, name))]));
  });
  return { settings: settingsDigest({ ...run.config }), tokenizer: sha256(canonicalJson(files)) };
}
