/**
 * A service for tests: it answers /hello, and its behaviour at the stop is a setting. Run as a process it is what a
 * service's main.ts is.
 */

import { readEnvironment } from "@hone/config";
import { delay } from "@hone/core";
import { z } from "zod";
import {
  type BaseConfig,
  createHttpApp,
  notReady,
  READY,
  readBaseConfig,
  runService,
  type ServiceDefinition,
} from "../src/index.ts";

const BEHAVIOURS = ["normal", "never ready", "drain hangs", "fails", "throws", "leaves work behind"] as const;

interface ExampleConfig extends BaseConfig {
  /** What happens while it runs. */
  readonly behaviour: (typeof BEHAVIOURS)[number];
}

export const exampleService: ServiceDefinition<ExampleConfig> = {
  name: "example",
  readConfig(environment) {
    const schema = z.object({
      EXAMPLE_BEHAVIOUR: z.enum(BEHAVIOURS).default("normal"),
    });
    return {
      ...readBaseConfig(environment),
      behaviour: readEnvironment(schema, environment).EXAMPLE_BEHAVIOUR,
    };
  },
  async start({ config, logger, fail, signal }) {
    const { behaviour } = config;
    if (behaviour === "leaves work behind") void delay(3_600_000, { signal });
    const routes = createHttpApp(logger);
    routes.get("/hello", (c) => c.text("hello"));
    routes.get("/broken", () => {
      throw new Error("broken on purpose");
    });
    routes.get("/do", () => {
      if (behaviour === "fails") fail(new Error("cannot go on"));
      if (behaviour === "throws") {
        setImmediate(() => {
          throw new Error("nobody catches this");
        });
      }
      return new Response("done");
    });
    return {
      routes,
      readiness: () => (behaviour === "never ready" ? notReady("it was told to be so") : READY),
      async drain(signal) {
        logger.info("draining");
        if (behaviour === "drain hangs") await delay(3_600_000, { signal });
      },
      async close() {
        logger.info("closing");
      },
    };
  },
};

if (import.meta.main) {
  await runService(exampleService, { graceMs: Number(process.env.EXAMPLE_GRACE_MS ?? 4_000) });
}
