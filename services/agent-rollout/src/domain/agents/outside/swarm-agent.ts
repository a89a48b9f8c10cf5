/**
 * The agent `swarm`: each attempt waits for a client somewhere else, which asks for an episode over HTTP, plays it through a
 * session, and reports its end (docs/swarm.md).
 */

import type { AgentDefinition, AgentResult, AgentRollout, BuildContext } from "@hone/agents";
import { type SwarmAgentConfig, swarmAgentSchema } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { checkRoles } from "./check-roles.ts";
import { swarmTaskOf } from "./outside-task.ts";

export const swarmAgent: AgentDefinition<SwarmAgentConfig, undefined> = {
  configSchema: swarmAgentSchema,
  needsEnvironment: false,
  leavesEnvironment: true,
  buildGraph: checkSwarm,
  run: lendEpisode,
};

/** @throws {InvalidInputError} where the operator lends no episodes, or the key of a role is missing. */
function checkSwarm({ roles }: SwarmAgentConfig, { outside }: BuildContext): undefined {
  checkRoles(roles, outside);
  if (outside?.lendsEpisodes === true) return;
  throw new InvalidInputError(
    "The agent swarm waits for clients, and agent-rollout takes none: set HONE_SWARM_KEY of agent-rollout to a secret of at least 16 characters, which the clients send",
    { path: "agent.swarm", allowed: "given where HONE_SWARM_KEY of agent-rollout is set" },
  );
}

function lendEpisode(_graph: undefined, rollout: AgentRollout<SwarmAgentConfig>): Promise<AgentResult> {
  const { swarm, roles, rewards } = rollout.config;
  return rollout.offerEpisode({
    ...swarm,
    task: swarmTaskOf(rollout),
    session: { roles, takesRewards: rewards === "session" },
  });
}
