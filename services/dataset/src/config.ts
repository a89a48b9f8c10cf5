/** What the dataset service is configured with. */

import { homedir, totalmem } from "node:os";
import { BoundKeys } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";

export interface DatasetConfig extends BaseConfig {
  /** Of task servers. */
  readonly keys: BoundKeys;
  /** Of the process that decodes a Parquet file; undefined = as the machine has it. */
  readonly parquetMemoryBytes: number | undefined;
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
    parquetMemoryBytes: parquetMemory(),
    hub: readHubSettings(environment, homedir()),
  };
}

/** Of a container: beside it lives the service itself. */
const PARQUET_SHARE = 0.6;

/** Undefined where no container bounds this process. */
function parquetMemory(): number | undefined {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? PARQUET_SHARE * constrained : undefined;
}
