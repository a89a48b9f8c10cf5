/** A model by what people call it: a folder of this machine, or a repository of the hub. */

import { stat } from "node:fs/promises";
import path from "node:path";
import type { ModelHub } from "./model-hub.ts";
import { type FetchOptions, isRepositoryId } from "./repository-hub.ts";

/**
 * The folder of a model; folders go first, as in `transformers`.
 * @param place an absolute path, or an id of the hub.
 * @returns undefined where it is neither.
 * @throws what {@link ModelHub.folderOf} throws.
 */
export async function findModel(
  hub: ModelHub,
  place: string,
  revision: string,
  options: FetchOptions,
): Promise<string | undefined> {
  if (path.isAbsolute(place) && (await isFolder(place))) return place;
  return isRepositoryId(place) ? hub.folderOf(place, revision, options) : undefined;
}

async function isFolder(place: string): Promise<boolean> {
  return stat(place).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
