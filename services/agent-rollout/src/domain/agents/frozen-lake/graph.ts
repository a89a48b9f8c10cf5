/**
 * The graph of the agent `frozen_lake`: the model answers, the environment moves, until the episode is over.
 *
 * LangGraph's functional API makes it one step of the graph, whatever the number of turns: a turn has nothing to branch on
 * and nothing to run at once. With a node for the model and one for the environment, LangGraph would take 1.3 ms of CPU
 * for five turns instead of 0.2.
 *
 * It is built once per configuration; the model and the environment of a rollout come with its invocation.
 */

import type { AgentRollout, EnvironmentReset } from "@hone/agents";
import { type AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { entrypoint } from "@langchain/langgraph";
import { MOVES } from "../../environments/frozen-lake/lake.ts";
import { type FrozenLakeAgentConfig, fillTemplate } from "./config.ts";

/** A turn that is over: what the model was shown, and its answer. */
interface PastTurn {
  readonly prompt: string;
  readonly answer: AIMessage;
}

/** How an episode ended. */
export interface FrozenLakeEnd {
  /** A limit ended it. */
  readonly isTruncated: boolean;
}

export type FrozenLakeRollout = AgentRollout<FrozenLakeAgentConfig>;

export function buildFrozenLakeGraph(config: FrozenLakeAgentConfig) {
  return entrypoint("frozen_lake", async (start: EnvironmentReset, run): Promise<FrozenLakeEnd> => {
    const rollout = run.configurable?.rollout as FrozenLakeRollout;
    const past: PastTurn[] = [];
    let { observation, info } = start;
    while (true) {
      const prompt = fillTemplate(config.promptTemplate, {
        ...info,
        observation,
        turn: past.length + 1,
        actionsLeft: rollout.maxTurns - past.length,
        actions: MOVES.join(", "),
        maxNewTokens: rollout.maxNewTokens,
      });
      const answer = await rollout.model.invoke(promptMessages(config, past, prompt), run);
      past.push({ prompt, answer });
      const step = await environmentOf(rollout).step(answer.text);
      if (step.terminated) return { isTruncated: step.truncated };
      if (step.truncated || past.length >= rollout.maxTurns) return { isTruncated: true };
      ({ observation, info } = step);
    }
  });
}

/** The conversation that the model is shown: the turns that it may still see, and the present prompt. */
function promptMessages(
  config: FrozenLakeAgentConfig,
  past: readonly PastTurn[],
  prompt: string,
): BaseMessage[] {
  const { systemPrompt, instruction, historyTurns } = config;
  const shown = historyTurns === null ? past : past.slice(Math.max(0, past.length - historyTurns));
  const messages: BaseMessage[] = systemPrompt === "" ? [] : [new SystemMessage(systemPrompt)];
  const firstPrompt = shown[0]?.prompt ?? prompt;
  messages.push(new HumanMessage(instruction === "" ? firstPrompt : `${instruction}\n${firstPrompt}`));
  for (const [index, { answer }] of shown.entries()) {
    messages.push(answer, new HumanMessage(shown[index + 1]?.prompt ?? prompt));
  }
  return messages;
}

export function environmentOf(rollout: FrozenLakeRollout): NonNullable<FrozenLakeRollout["environment"]> {
  if (rollout.environment === undefined)
    throw new TypeError("the agent frozen_lake was run without an environment");
  return rollout.environment;
}
