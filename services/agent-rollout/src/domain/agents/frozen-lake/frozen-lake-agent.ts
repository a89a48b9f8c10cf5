/** The agent `frozen_lake`, which crosses a frozen lake with one answer in each turn. */

import type { AgentDefinition } from "@hone/agents";
import { type FrozenLakeAgentConfig, frozenLakeAgentConfigSchema } from "./config.ts";
import { buildFrozenLakeGraph, environmentOf } from "./graph.ts";

export const frozenLakeAgent: AgentDefinition<
  FrozenLakeAgentConfig,
  ReturnType<typeof buildFrozenLakeGraph>
> = {
  configSchema: frozenLakeAgentConfigSchema,
  needsEnvironment: true,
  buildGraph: buildFrozenLakeGraph,
  async run(graph, rollout) {
    const start = await environmentOf(rollout).reset();
    return graph.invoke(start, { configurable: { rollout } });
  },
};
