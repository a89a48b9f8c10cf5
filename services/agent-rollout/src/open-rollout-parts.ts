/** Makes what rollouts need besides a policy, from the service's configuration. */

import "./domain/built-ins.ts";
import { AgentCatalog, AgentModules } from "@hone/agents";
import { PackageFolder } from "@hone/sandbox";
import { MeasuredSandbox } from "@hone/service-kit";
import type { AgentRolloutConfig } from "./config.ts";
import { AgentConfigs } from "./domain/agent-configs.ts";
import type { RolloutDependencies } from "./domain/run-rollout.ts";

/** Disposing of it closes what agents opened, such as servers of tools. */
export type RolloutParts = Pick<RolloutDependencies, "agents" | "modules" | "agentConfigAt" | "endpoints"> &
  AsyncDisposable;

export function openRolloutParts({
  filesDir,
  toolSecrets,
  endpoints,
  gate,
  sandboxProcesses,
  sandboxPackages,
  swarmKey,
}: Pick<
  AgentRolloutConfig,
  "filesDir" | "toolSecrets" | "endpoints" | "gate" | "sandboxProcesses" | "sandboxPackages" | "swarmKey"
>): RolloutParts {
  const sandbox = new MeasuredSandbox("tool", { maxProcesses: sandboxProcesses });
  const agents = new AgentCatalog({
    filesFolder: filesDir,
    gate,
    secrets: toolSecrets,
    sandbox,
    packages: sandboxPackages === undefined ? undefined : new PackageFolder(sandboxPackages),
    outside: { keys: endpoints.keys, lendsEpisodes: swarmKey !== undefined },
  });
  const agentConfigs = new AgentConfigs(filesDir);
  return {
    agents,
    modules: new AgentModules(gate),
    agentConfigAt: (path) => agentConfigs.at(path),
    endpoints,
    [Symbol.asyncDispose]: async () => {
      await agents.close();
      await sandbox.close();
    },
  };
}
