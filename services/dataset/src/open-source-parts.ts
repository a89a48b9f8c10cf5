/** Makes what sources are opened with, from the service's configuration. */

import path from "node:path";
import { DatasetHub } from "@hone/hub";
import type { Logger } from "@hone/telemetry";
import type { DatasetConfig } from "./config.ts";
import { RowFiles } from "./files/row-files.ts";
import { TaskLists } from "./files/sources/environment-service-source.ts";
import { HubDatasets } from "./files/sources/hub-datasets.ts";
import type { SourceParts } from "./files/sources/open-source.ts";

/** Disposing of the result ends the downloads that are under way. */
export function openSourceParts(
  { stateDir, filesDir, hub, keys, parquetMemoryBytes }: DatasetConfig,
  logger: Logger,
): SourceParts & Disposable {
  const closing = new AbortController();
  return {
    files: new RowFiles({
      root: filesDir,
      cacheFolder: path.join(stateDir, "dataset"),
      parquetMemoryBytes,
      logger,
    }),
    hub: new HubDatasets({ root: filesDir, hub: new DatasetHub(hub), signal: closing.signal, logger }),
    keys,
    taskLists: new TaskLists(),
    [Symbol.dispose]: () => closing.abort(),
  };
}
