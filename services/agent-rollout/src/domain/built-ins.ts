/** Registers the agents, environments and tools that come with Hone, when this file is first imported. */

import {
  calculatorConfigSchema,
  makeCalculator,
  makeSearch,
  register,
  registerEnvironment,
  registerTool,
  searchConfigSchema,
} from "@hone/agents";
import { OutsideAgent } from "@hone/config";
import { gymAgent } from "./agents/gym/gym-agent.ts";
import { mathCodeAgent, mathEvalAgent } from "./agents/math/chatlearn-agents.ts";
import { mathAgent, pythonMathAgent } from "./agents/math/math-agents.ts";
import { commandAgent } from "./agents/outside/command-agent.ts";
import { endpointAgent } from "./agents/outside/endpoint-agent.ts";
import { swarmAgent } from "./agents/outside/swarm-agent.ts";
import { reactAgent } from "./agents/react/react-agent.ts";
import { singleTurnAgent } from "./agents/single-turn/single-turn-agent.ts";
import { toolAgent } from "./agents/tool-agent/tool-agent.ts";
import { environmentServiceConfigSchema } from "./environments/environment-service/config.ts";
import { makeEnvironmentService } from "./environments/environment-service/environment-service.ts";
import { FrozenLake, frozenLakeConfigSchema } from "./environments/frozen-lake/frozen-lake.ts";
import { logNormalMs, SlowEnvironment } from "./environments/slow-environment.ts";
import { Sokoban, sokobanConfigSchema } from "./environments/sokoban/sokoban.ts";
import { TextHouse, textHouseConfigSchema } from "./environments/text-house/text-house.ts";
import { WebShop, webshopConfigSchema } from "./environments/webshop/webshop.ts";
import { containerConfigSchema } from "./tools/container/config.ts";
import { makeContainerTools } from "./tools/container/container-tools.ts";
import { makeMathRewardTool, mathRewardConfigSchema } from "./tools/math-reward.ts";
import { makeExecutePythonTool, makePythonTool, pythonConfigSchema } from "./tools/python.ts";

registerEnvironment("frozen_lake", {
  configSchema: frozenLakeConfigSchema,
  create: (config) => {
    const lake = new FrozenLake(config);
    const { stepDelayMs, stepDelaySigma } = config;
    return stepDelayMs === 0 ? lake : new SlowEnvironment(lake, logNormalMs(stepDelayMs, stepDelaySigma));
  },
});

registerEnvironment("text_house", {
  configSchema: textHouseConfigSchema,
  create: (config) => new TextHouse(config),
});

registerEnvironment("sokoban", {
  configSchema: sokobanConfigSchema,
  create: (config) => new Sokoban(config),
});

registerEnvironment("webshop", {
  configSchema: webshopConfigSchema,
  create: (config) => new WebShop(config),
});

registerEnvironment("environment_service", {
  configSchema: environmentServiceConfigSchema,
  isRemote: true,
  create: makeEnvironmentService,
});

register("gym", gymAgent);
// The name by which run files knew it while FrozenLake was the only environment.
register("frozen_lake", gymAgent);
register("single_turn", singleTurnAgent);
register("tool_agent", toolAgent);
register("react", reactAgent);
register("math", mathAgent);
register("python_math", pythonMathAgent);
register("matheval", mathEvalAgent);
register("mathcode", mathCodeAgent);
// The names that the rows of ChatLearn's own programs have.
register("matheval_agent", mathEvalAgent);
register("mathcode_agent", mathCodeAgent);
register(OutsideAgent.command, commandAgent);
register(OutsideAgent.endpoint, endpointAgent);
register(OutsideAgent.swarm, swarmAgent);

registerTool("calculator", { configSchema: calculatorConfigSchema, create: makeCalculator });
registerTool("python", { configSchema: pythonConfigSchema, create: makePythonTool });
registerTool("container", { configSchema: containerConfigSchema, create: makeContainerTools });
registerTool("execute_python", { configSchema: pythonConfigSchema, create: makeExecutePythonTool });
registerTool("mathlighteval_reward", { configSchema: mathRewardConfigSchema, create: makeMathRewardTool });
registerTool("search", {
  configSchema: searchConfigSchema,
  create: (config, { filesFolder }) => makeSearch(config, filesFolder),
});
