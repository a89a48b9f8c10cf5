/** What the dataset service is configured with. */

import { homedir } from "node:os";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";

export interface DatasetConfig extends BaseConfig {
  /** Keys of task servers, by the name of their variable. */
  readonly keys: Readonly<Record<string, string | undefined>>;
  /** Where data sets of the hub come from. */
  readonly hub: HubSettings;
}

/** Run files name variables, and send what they hold to addresses of their own: no other variable may be named. */
const KEY_PREFIX = "HONE_DATASET_KEY";

/** @throws {ConfigError} with every variable that is wrong. */
export function readDatasetConfig(environment: Environment): DatasetConfig {
  const keys = Object.entries(environment).filter(([name]) => name.startsWith(KEY_PREFIX));
  return {
    ...readBaseConfig(environment),
    keys: Object.fromEntries(keys),
    hub: readHubSettings(environment, homedir()),
  };
}
