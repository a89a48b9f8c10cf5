/** What rollouts are played with beside a policy, from the service's configuration. */

import "./domain/built-ins.ts";
import { AgentCatalog, AgentModules } from "@hone/agents";
import type { AgentRolloutConfig } from "./config.ts";
import { AgentConfigs } from "./domain/agent-configs.ts";
import type { RolloutDependencies } from "./domain/run-rollout.ts";

/** Dispose gives back what agents opened, such as servers of tools. */
export type RolloutParts = Pick<RolloutDependencies, "agents" | "modules" | "agentConfigAt" | "endpoints"> &
  AsyncDisposable;

export function openRolloutParts({
  filesDir,
  toolSecrets,
  endpoints,
  commandEnvironment,
}: Pick<AgentRolloutConfig, "filesDir" | "toolSecrets" | "endpoints" | "commandEnvironment">): RolloutParts {
  const agents = new AgentCatalog({
    filesFolder: filesDir,
    secrets: toolSecrets,
    outside: { commandEnvironment, keyOf: (variable) => endpoints.keyOf(variable) },
  });
  const agentConfigs = new AgentConfigs(filesDir);
  return {
    agents,
    modules: new AgentModules(filesDir),
    agentConfigAt: (path) => agentConfigs.at(path),
    endpoints,
    [Symbol.asyncDispose]: () => agents.close(),
  };
}
