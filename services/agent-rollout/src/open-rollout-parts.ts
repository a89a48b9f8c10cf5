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
  gate,
}: Pick<AgentRolloutConfig, "filesDir" | "toolSecrets" | "endpoints" | "gate">): RolloutParts {
  const agents = new AgentCatalog({
    filesFolder: filesDir,
    gate,
    secrets: toolSecrets,
    outside: { keys: endpoints.keys },
  });
  const agentConfigs = new AgentConfigs(filesDir);
  return {
    agents,
    modules: new AgentModules(gate),
    agentConfigAt: (path) => agentConfigs.at(path),
    endpoints,
    [Symbol.asyncDispose]: () => agents.close(),
  };
}
