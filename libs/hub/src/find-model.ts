/** A model by what people call it: a folder of this machine, or a repository of the hub. */

import path from "node:path";
import type { ModelFolders } from "@hone/config";
import type { ModelHub } from "./model-hub.ts";
import { type FetchOptions, isRepositoryId } from "./repository-hub.ts";

export interface FindModelOptions extends FetchOptions {
  /** Folders that it may lie in. */
  readonly folders: ModelFolders;
  /** That names the place, for errors, such as `model.path`. */
  readonly key: string;
}

/**
 * The folder of a model; folders go first, as in `transformers`.
 * @param place an absolute path, or an id of the hub.
 * @returns undefined where it is neither.
 * @throws {InvalidInputError} for a path outside of the folders.
 * @throws what {@link ModelHub.folderOf} throws.
 */
export async function findModel(
  hub: ModelHub,
  place: string,
  revision: string,
  { folders, key, ...options }: FindModelOptions,
): Promise<string | undefined> {
  if (path.isAbsolute(place)) return folders.find(place, key);
  return isRepositoryId(place) ? hub.folderOf(place, revision, options) : undefined;
}
