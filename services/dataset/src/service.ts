/**
 * The dataset service: tasks as a pure function of (source, run seed, cursor, count).
 *
 * It keeps nothing but what it made of files (indices, Parquet as JSON Lines), so any number of replicas answer alike.
 */

import path from "node:path";
import { READY, type ServiceDefinition } from "@hone/service-kit";
import { type DatasetConfig, readDatasetConfig } from "./config.ts";
import { RowFiles } from "./files/row-files.ts";
import { serveDataset } from "./nats/serve.ts";

export const datasetService: ServiceDefinition<DatasetConfig> = {
  name: "dataset",
  readConfig: readDatasetConfig,
  async start({ config, bus, logger }) {
    const cacheFolder = path.join(config.stateDir, "dataset");
    const files = new RowFiles({ root: config.filesDir, cacheFolder, logger });
    const responders = serveDataset(bus, { files, keys: config.keys }, logger);
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all(responders.map((responder) => responder.drain()));
      },
      close: async () => undefined,
    };
  },
};
