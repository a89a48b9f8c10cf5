/**
 * The graph of the agent `frozen_lake`: the model answers and the environment moves, until the episode is over.
 *
 * With LangGraph's functional API all turns are one step of the graph, as a turn has no branches and no parallel work. With
 * a node for the model and one for the environment, LangGraph would take 1.3 ms of CPU for five turns instead of 0.2.
 *
 * The graph is built once for each configuration; the model and the environment of a rollout are passed at its invocation.
 */

import type { AgentRollout, EnvironmentReset } from "@hone/agents";
import { type AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { entrypoint } from "@langchain/langgraph";
import { MOVES } from "../../environments/frozen-lake/lake.ts";
import { type FrozenLakeAgentConfig, fillTemplate } from "./config.ts";

/** An earlier turn: its prompt, and the model's answer. */
interface PastTurn {
  readonly prompt: string;
  readonly answer: AIMessage;
}

/** How an episode ended. */
export interface FrozenLakeEnd {
  /** Whether a limit ended it. */
  readonly isTruncated: boolean;
}

export type FrozenLakeRollout = AgentRollout<FrozenLakeAgentConfig>;

export function buildFrozenLakeGraph(config: FrozenLakeAgentConfig) {
  return entrypoint("frozen_lake", async (start: EnvironmentReset, run): Promise<FrozenLakeEnd> => {
    const rollout = run.configurable?.rollout as FrozenLakeRollout;
    const { historyTurns } = config;
    // Only turns that will be shown again are kept, as thousands of rollouts are in memory at once.
    const past: PastTurn[] = [];
    let { observation, info } = start;
    for (let turn = 1; ; turn++) {
      const prompt = fillTemplate(config.promptTemplate, {
        ...info,
        observation,
        turn,
        actionsLeft: rollout.maxTurns - turn + 1,
        actions: MOVES.join(", "),
        maxNewTokens: rollout.maxNewTokens,
      });
      const answer = await rollout.model.invoke(promptMessages(config, past, prompt), run);
      past.push({ prompt, answer });
      if (historyTurns !== null && past.length > historyTurns) past.shift();
      const step = await environmentOf(rollout).step(answer.text);
      if (step.terminated) return { isTruncated: step.truncated };
      if (step.truncated || turn >= rollout.maxTurns) return { isTruncated: true };
      ({ observation, info } = step);
    }
  });
}

/** The conversation that the model is shown: the earlier turns, as far as they are kept, and the prompt of this turn. */
function promptMessages(
  config: FrozenLakeAgentConfig,
  past: readonly PastTurn[],
  prompt: string,
): BaseMessage[] {
  const { systemPrompt, instruction } = config;
  const messages: BaseMessage[] = systemPrompt === "" ? [] : [new SystemMessage(systemPrompt)];
  const firstPrompt = past[0]?.prompt ?? prompt;
  messages.push(new HumanMessage(instruction === "" ? firstPrompt : `${instruction}\n${firstPrompt}`));
  for (const [index, { answer }] of past.entries()) {
    messages.push(answer, new HumanMessage(past[index + 1]?.prompt ?? prompt));
  }
  return messages;
}

export function environmentOf(rollout: FrozenLakeRollout): NonNullable<FrozenLakeRollout["environment"]> {
  if (rollout.environment === undefined)
    throw new TypeError("the agent frozen_lake was run without an environment");
  return rollout.environment;
}
