/** Registers the agents and environments that come with Hone. Importing this file does it, once per process. */

import { register, registerEnvironment } from "@hone/agents";
import { frozenLakeAgent } from "./agents/frozen-lake/frozen-lake-agent.ts";
import { singleTurnAgent } from "./agents/single-turn/single-turn-agent.ts";
import { FrozenLake, frozenLakeConfigSchema } from "./environments/frozen-lake/frozen-lake.ts";
import { SlowEnvironment } from "./environments/slow-environment.ts";

registerEnvironment("frozen_lake", {
  configSchema: frozenLakeConfigSchema,
  create: (config) => {
    const lake = new FrozenLake(config);
    return config.stepDelayMs === 0 ? lake : new SlowEnvironment(lake, config.stepDelayMs);
  },
});
register("frozen_lake", frozenLakeAgent);
register("single_turn", singleTurnAgent);
