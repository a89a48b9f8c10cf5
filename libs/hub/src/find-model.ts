/** A model by what people call it: a folder of this machine, or a repository of the hub. */

import { stat } from "node:fs/promises";
import path from "node:path";
import { type FetchModelOptions, isModelId, type ModelHub } from "./model-hub.ts";

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
  options: FetchModelOptions,
): Promise<string | undefined> {
  if (path.isAbsolute(place) && (await isFolder(place))) return place;
  return isModelId(place) ? hub.folderOf(place, revision, options) : undefined;
}

async function isFolder(place: string): Promise<boolean> {
  return stat(place).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
