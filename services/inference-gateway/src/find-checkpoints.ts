/** Checkpoints to serve: folders of this machine, or repositories of the hub, as `owner/name` or `owner/name@revision`. */

import { findModel, type HubSettings, ModelHub } from "@hone/hub";
import { CheckpointPlaceError } from "./domain/errors.ts";
import type { FindCheckpoint } from "./domain/serving/served-checkpoints.ts";

const DEFAULT_REVISION = "main";

export function findCheckpoints(settings: HubSettings): FindCheckpoint {
  const hub = new ModelHub(settings);
  return async function findCheckpoint(place, options) {
    const [, name = place, revision = DEFAULT_REVISION] = /^([^/@]+\/[^@]+)@(.+)$/.exec(place) ?? [];
    const folder = await findModel(hub, name, revision, options);
    if (folder === undefined) throw new CheckpointPlaceError(place);
    return folder;
  };
}
