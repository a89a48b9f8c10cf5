/** What the dataset service is configured with. */

import { homedir } from "node:os";
import { BoundKeys } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";

export interface DatasetConfig extends BaseConfig {
  /** Of task servers. */
  readonly keys: BoundKeys;
  /** Where data sets of the hub come from. */
  readonly hub: HubSettings;
}

/** Run files name variables: no other may be named. */
const KEY_PREFIX = "HONE_DATASET_KEY";

/** @throws {ConfigError} with every variable that is wrong. */
export function readDatasetConfig(environment: Environment): DatasetConfig {
  return {
    ...readBaseConfig(environment),
    keys: new BoundKeys(KEY_PREFIX, environment, "the dataset service"),
    hub: readHubSettings(environment, homedir()),
  };
}
