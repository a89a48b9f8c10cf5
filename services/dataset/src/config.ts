/** The configuration of the dataset service. */

import { homedir, totalmem } from "node:os";
import { BoundKeys } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";

export interface DatasetConfig extends BaseConfig {
  /** The keys of task servers. */
  readonly keys: BoundKeys;
  /** Most memory of the process that decodes a Parquet file; undefined = the default of parquetToJsonl(). */
  readonly parquetMemoryBytes: number | undefined;
  /** Where data sets of the hub come from. */
  readonly hub: HubSettings;
}

/** Run files name the variable that holds a key; they may only name variables that begin with this. */
const KEY_PREFIX = "HONE_DATASET_KEY";

/** @throws {ConfigError} that names every variable that is wrong. */
export function readDatasetConfig(environment: Environment): DatasetConfig {
  return {
    ...readBaseConfig(environment),
    keys: new BoundKeys(KEY_PREFIX, environment, "the dataset service"),
    parquetMemoryBytes: parquetMemory(),
    hub: readHubSettings(environment, homedir()),
  };
}

/** Share of a container's memory that decoding may take; the service itself needs the rest. */
const PARQUET_SHARE = 0.6;

/** @returns undefined where no container limits the memory of this process. */
function parquetMemory(): number | undefined {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? PARQUET_SHARE * constrained : undefined;
}
