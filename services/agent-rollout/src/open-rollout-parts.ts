/** Makes what rollouts need besides a policy, from the service's configuration. */

import "./domain/built-ins.ts";
import { AgentCatalog, AgentModules } from "@hone/agents";
import { ContainerHost, PackageFolder } from "@hone/sandbox";
import { MeasuredSandbox } from "@hone/service-kit";
import type { AgentRolloutConfig } from "./config.ts";
import { AgentConfigs } from "./domain/agent-configs.ts";
import type { RolloutDependencies } from "./domain/run-rollout.ts";

/** Disposing of it closes what agents opened, such as servers of tools. */
export type RolloutParts = Pick<RolloutDependencies, "agents" | "modules" | "agentConfigAt" | "endpoints"> &
  AsyncDisposable & {
    /** Makes containers for tools; undefined = the operator allows none. */
    readonly containers: ContainerHost | undefined;
  };

export function openRolloutParts({
  filesDir,
  toolSecrets,
  endpoints,
  gate,
  sandboxProcesses,
  sandboxPackages,
  containers: containerOptions,
  swarmKey,
}: Pick<
  AgentRolloutConfig,
  | "filesDir"
  | "toolSecrets"
  | "endpoints"
  | "gate"
  | "sandboxProcesses"
  | "sandboxPackages"
  | "containers"
  | "swarmKey"
>): RolloutParts {
  const containers = containerOptions && new ContainerHost(containerOptions);
  const sandbox = new MeasuredSandbox("tool", { maxProcesses: sandboxProcesses });
  const agents = new AgentCatalog({
    filesFolder: filesDir,
    gate,
    secrets: toolSecrets,
    sandbox,
    packages: sandboxPackages === undefined ? undefined : new PackageFolder(sandboxPackages),
    containers,
    outside: { keys: endpoints.keys, lendsEpisodes: swarmKey !== undefined },
  });
  const agentConfigs = new AgentConfigs(filesDir);
  return {
    agents,
    modules: new AgentModules(gate),
    agentConfigAt: (path) => agentConfigs.at(path),
    endpoints,
    containers,
    [Symbol.asyncDispose]: async () => {
      await agents.close();
      await sandbox.close();
    },
  };
}
