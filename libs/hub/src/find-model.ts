/** Finds a model by its folder on this machine or its repository on the hub. */

import path from "node:path";
import type { ModelFolders } from "@hone/config";
import type { ModelHub } from "./model-hub.ts";
import { type FetchOptions, isRepositoryId } from "./repository-hub.ts";

export interface FindModelOptions extends FetchOptions {
  /** Folders that it may be in. */
  readonly folders: ModelFolders;
  /** The key that names the model, for errors, such as `model.path`. */
  readonly key: string;
}

/**
 * @returns the folder of a model. Folders take precedence over ids, as in `transformers`.
 * @param place an absolute path, or an id of the hub.
 * @returns undefined if it is neither.
 * @throws {InvalidInputError} for a path outside of the folders.
 * @throws the same as {@link ModelHub.folderOf}.
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
