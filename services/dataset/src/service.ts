/**
 * The dataset service: tasks as a pure function of (source, run seed, cursor, count).
 *
 * The only state it keeps is derived from files (indices, and Parquet as JSON Lines), so all replicas give the same answers.
 */

import { READY, type ServiceDefinition } from "@hone/service-kit";
import { type DatasetConfig, readDatasetConfig } from "./config.ts";
import { serveDataset } from "./nats/serve.ts";
import { openSourceParts } from "./open-source-parts.ts";

export const datasetService: ServiceDefinition<DatasetConfig> = {
  name: "dataset",
  readConfig: readDatasetConfig,
  async start({ config, bus, logger }) {
    const parts = openSourceParts(config, logger);
    const responders = serveDataset(bus, parts, logger);
    return {
      readiness: () => READY,
      drain: async () => {
        await Promise.all(responders.map((responder) => responder.drain()));
      },
      close: async () => parts[Symbol.dispose](),
    };
  },
};
