/** Which model a person means: a run's weights, a folder, or one of the hub. */

import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { findRunWeights } from "./run-weights.ts";

/** As `model.path` and `model.revision` of a run file. */
export interface ModelPlace {
  /** An absolute folder, or an id of the hub. */
  readonly path: string;
  /** Of the hub; a folder has the default one, which says nothing. */
  readonly revision: string;
}

export interface FoundModel {
  readonly place: ModelPlace;
  /** For people. */
  readonly shown: string;
}

export interface FindModelFolders {
  /** Where Hone keeps its runs. */
  readonly state: string;
  /** Where the person stands. */
  readonly user: string;
}

const RUN_AND_VERSION = /^([a-z0-9-]+)(?:@(\d{1,9}))?$/;
const HUB_ID = /^(?!\.)([\w.-]+\/[\w.-]+)(?:@([\w./-]{1,255}))?$/;
const DEFAULT_REVISION = "main";

/**
 * Runs go first, then folders; what is neither is an id of the hub, which the service that loads it checks.
 * @throws {UsageError} when it can be none of them.
 */
export async function findModel(text: string, folders: FindModelFolders): Promise<FoundModel> {
  const [, run, version] = RUN_AND_VERSION.exec(text) ?? [];
  if (run !== undefined && (await isFolder(join(folders.state, "runs", run)))) {
    const found = await findRunWeights(
      folders.state,
      run,
      version === undefined ? undefined : Number(version),
      "use",
    );
    return { place: { path: found.folder, revision: DEFAULT_REVISION }, shown: `${run}@${found.version}` };
  }
  const folder = resolve(folders.user, text);
  if (text !== "" && (await isFolder(folder)))
    return { place: { path: folder, revision: DEFAULT_REVISION }, shown: text };
  const [, id, revision = DEFAULT_REVISION] = HUB_ID.exec(text) ?? [];
  if (id !== undefined) return { place: { path: id, revision }, shown: text };
  throw new UsageError(
    `Cannot use a model as it must be a run (RUN or RUN@VERSION), a folder, or an id of the hub such as owner/name or owner/name@revision: current value is ${text}`,
  );
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
