/** Pretrained models: a folder of this machine, or a repository of the hub. */

import { stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@hone/core";
import { type HubSettings, isModelId, ModelHub } from "@hone/hub";
import type { ModelSource } from "./domain/model-source.ts";

/** Folders go first, as in `transformers`. */
export function findModels(settings: HubSettings): ModelSource {
  const hub = new ModelHub(settings);
  return {
    async folderOf({ path: place, revision }, options) {
      if (path.isAbsolute(place) && (await isFolder(place))) return place;
      if (isModelId(place)) return hub.folderOf(place, revision, options);
      const allowed =
        "a folder, absolute or below the project folder, or an id of the hub such as owner/name";
      throw new InvalidInputError(
        `Cannot find a model as model.path must be ${allowed}: current value is ${JSON.stringify(place)}`,
        { path: "model.path", allowed },
      );
    },
  };
}

async function isFolder(place: string): Promise<boolean> {
  return stat(place).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
