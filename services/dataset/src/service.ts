/**
 * The dataset service: tasks as a pure function of (source, run seed, cursor, count).
 *
 * It keeps nothing but indices of files, so any number of replicas answer alike.
 */

import { READY, type ServiceDefinition } from "@hone/service-kit";
import { type DatasetConfig, readDatasetConfig } from "./config.ts";
import { JsonlFiles } from "./files/jsonl-files.ts";
import { serveDataset } from "./nats/serve.ts";

export const datasetService: ServiceDefinition<DatasetConfig> = {
  name: "dataset",
  readConfig: readDatasetConfig,
  async start({ config, bus, logger }) {
    const responders = serveDataset(bus, new JsonlFiles(config.filesDir), logger);
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all(responders.map((responder) => responder.drain()));
      },
      close: async () => undefined,
    };
  },
};
