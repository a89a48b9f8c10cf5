/** Finds pretrained models: in a folder of this machine, or in a repository of the hub. */

import type { ModelFolders } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { findModel, type HubSettings, ModelHub } from "@hone/hub";
import type { ModelSource } from "./domain/model/model-source.ts";

export function findModels(settings: HubSettings, folders: ModelFolders): ModelSource {
  const hub = new ModelHub(settings);
  return {
    async folderOf({ path: place, revision }, options) {
      const { key } = options;
      const folder = await findModel(hub, place, revision, { ...options, folders });
      if (folder !== undefined) return folder;
      const allowed =
        "a folder, absolute or below the project folder, or an id of the hub such as owner/name";
      throw new InvalidInputError(`${key} ${JSON.stringify(place)} does not exist; give ${allowed}`, {
        path: key,
        allowed,
      });
    },
  };
}
