/** The agent `frozen_lake`: walks over the ice, one answer a turn. */

import type { AgentDefinition } from "@hone/agents";
import { type FrozenLakeAgentConfig, frozenLakeAgentConfigSchema } from "./config.ts";
import { buildFrozenLakeGraph, environmentOf } from "./graph.ts";

/** Two nodes a turn, and some room: the turns are bounded by the rollout's limits, not by this. */
const STEPS_PER_TURN = 2;
const SPARE_STEPS = 3;

export const frozenLakeAgent: AgentDefinition<
  FrozenLakeAgentConfig,
  ReturnType<typeof buildFrozenLakeGraph>
> = {
  configSchema: frozenLakeAgentConfigSchema,
  needsEnvironment: true,
  buildGraph: buildFrozenLakeGraph,
  async run(graph, rollout) {
    const { observation, info } = await environmentOf(rollout).reset();
    const end = await graph.invoke(
      { observation, info, past: [], isTruncated: false },
      { configurable: { rollout }, recursionLimit: STEPS_PER_TURN * rollout.maxTurns + SPARE_STEPS },
    );
    return { isTruncated: end.isTruncated };
  },
};
