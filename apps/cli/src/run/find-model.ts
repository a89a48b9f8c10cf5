/** Finds the model that a user names: a run's weights, a folder, or a model of the hub. */

import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { findRunWeights } from "./run-weights.ts";

/** A model in the terms of a run file's `model.path` and `model.revision`. */
export interface ModelPlace {
  /** An absolute folder, or an id of the hub. */
  readonly path: string;
  /** Revision on the hub; for a folder the default, which has no effect. */
  readonly revision: string;
}

export interface FoundModel {
  readonly place: ModelPlace;
  /** The model's name in messages. */
  readonly shown: string;
}

export interface FindModelFolders {
  /** The state folder, which holds the runs. */
  readonly state: string;
  /** The user's current folder. */
  readonly user: string;
}

const RUN_AND_VERSION = /^([a-z0-9-]+)(?:@(\d{1,9}))?$/;
const HUB_ID = /^(?!\.)([\w.-]+\/[\w.-]+)(?:@([\w./-]{1,255}))?$/;
const DEFAULT_REVISION = "main";

/**
 * Looks for a run, then for a folder. Anything else is taken as an id of the hub, which the service that loads it checks.
 * @throws {UsageError} when the text can be none of these.
 */
export async function findModel(text: string, folders: FindModelFolders): Promise<FoundModel> {
  const [, run, version] = RUN_AND_VERSION.exec(text) ?? [];
  if (run !== undefined && (await isFolder(join(folders.state, "runs", run)))) {
    const found = await findRunWeights(
      folders.state,
      run,
      version === undefined ? undefined : Number(version),
    );
    return { place: { path: found.folder, revision: DEFAULT_REVISION }, shown: `${run}@${found.version}` };
  }
  const folder = resolve(folders.user, text);
  if (text !== "" && (await isFolder(folder)))
    return { place: { path: folder, revision: DEFAULT_REVISION }, shown: text };
  const [, id, revision = DEFAULT_REVISION] = HUB_ID.exec(text) ?? [];
  if (id !== undefined) return { place: { path: id, revision }, shown: text };
  throw new UsageError(
    `${text || "an empty name"} is not a run (RUN or RUN@VERSION), a folder or a hub id such as owner/name or owner/name@revision`,
  );
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
