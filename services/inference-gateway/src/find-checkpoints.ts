/** Finds checkpoints to serve: folders of this machine, or repositories of the hub as `owner/name` or `owner/name@revision`. */

import type { ModelFolders } from "@hone/config";
import { findModel, type HubSettings, ModelHub } from "@hone/hub";
import { CheckpointPlaceError } from "./domain/errors.ts";
import type { FindCheckpoint } from "./domain/serving/served-checkpoints.ts";

const DEFAULT_REVISION = "main";

/** @param folders in which checkpoints may be, and the base models of adapters among them. */
export function findCheckpoints(settings: HubSettings, folders: ModelFolders): FindCheckpoint {
  const hub = new ModelHub(settings);
  return async function findCheckpoint(place, options) {
    const [, name = place, revision = DEFAULT_REVISION] = /^([^/@]+\/[^@]+)@(.+)$/.exec(place) ?? [];
    const folder = await findModel(hub, name, revision, {
      ...options,
      folders,
      key: "the place of a checkpoint",
    });
    if (folder === undefined) throw new CheckpointPlaceError(place);
    return folder;
  };
}
