/**
 * The dataset service: tasks as a pure function of (source, run seed, cursor, count).
 *
 * It keeps nothing but what it made of files (indices, Parquet as JSON Lines), so any number of replicas answer alike.
 */

import path from "node:path";
import { DatasetHub } from "@hone/hub";
import { READY, type ServiceDefinition } from "@hone/service-kit";
import { type DatasetConfig, readDatasetConfig } from "./config.ts";
import { HubDatasets } from "./files/hub-datasets.ts";
import { RowFiles } from "./files/row-files.ts";
import { serveDataset } from "./nats/serve.ts";

export const datasetService: ServiceDefinition<DatasetConfig> = {
  name: "dataset",
  readConfig: readDatasetConfig,
  async start({ config, bus, logger }) {
    const cacheFolder = path.join(config.stateDir, "dataset");
    const files = new RowFiles({ root: config.filesDir, cacheFolder, logger });
    const closing = new AbortController();
    const hub = new HubDatasets({
      root: config.filesDir,
      hub: new DatasetHub(config.hub),
      signal: closing.signal,
      logger,
    });
    const responders = serveDataset(bus, { files, hub, keys: config.keys }, logger);
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all(responders.map((responder) => responder.drain()));
      },
      close: async () => closing.abort(),
    };
  },
};
