/**
 * The graph of the agent `frozen_lake`:
 *
 *   START -> agent -> environment -+-> END         the episode ended, or the turns are used up
 *              ^-------------------'
 *
 * It is built once per configuration; the model and the environment of a rollout come with its invocation.
 */

import type { AgentRollout, EnvironmentInfo } from "@hone/agents";
import { type AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { MOVES } from "../../environments/frozen-lake/lake.ts";
import { type FrozenLakeAgentConfig, fillTemplate } from "./config.ts";

/** A turn that is over: what the model was shown, and its answer. */
export interface PastTurn {
  readonly prompt: string;
  readonly answer: AIMessage;
}

/** What flows through the graph. */
export const FrozenLakeState = Annotation.Root({
  observation: Annotation<string>,
  info: Annotation<EnvironmentInfo>,
  /** Every turn that is over, oldest first. */
  past: Annotation<readonly PastTurn[]>,
  /** A limit ended the episode. */
  isTruncated: Annotation<boolean>,
});
export type FrozenLakeStateType = typeof FrozenLakeState.State;

export type FrozenLakeRollout = AgentRollout<FrozenLakeAgentConfig>;

export function buildFrozenLakeGraph(config: FrozenLakeAgentConfig) {
  async function agent(state: FrozenLakeStateType, run: RunnableConfig) {
    const { model, maxTurns, maxNewTokens } = rolloutOf(run);
    const turn = state.past.length;
    const prompt = fillTemplate(config.promptTemplate, {
      ...state.info,
      observation: state.observation,
      turn: turn + 1,
      actionsLeft: maxTurns - turn,
      actions: MOVES.join(", "),
      maxNewTokens,
    });
    const answer = await model.invoke(promptMessages(config, state.past, prompt), run);
    return { past: [...state.past, { prompt, answer }] };
  }

  async function environment(state: FrozenLakeStateType, run: RunnableConfig) {
    const rollout = rolloutOf(run);
    const step = await environmentOf(rollout).step(state.past.at(-1)!.answer.text);
    const isTruncated = step.truncated || (!step.terminated && state.past.length >= rollout.maxTurns);
    return new Command({
      update: { observation: step.observation, info: step.info, isTruncated },
      goto: step.terminated || isTruncated ? END : "agent",
    });
  }

  return new StateGraph(FrozenLakeState)
    .addNode("agent", agent)
    .addNode("environment", environment, { ends: ["agent", END] })
    .addEdge(START, "agent")
    .addEdge("agent", "environment")
    .compile();
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

/** The rollout that the graph was invoked for. */
function rolloutOf(run: RunnableConfig): FrozenLakeRollout {
  return run.configurable?.rollout as FrozenLakeRollout;
}

export function environmentOf(rollout: FrozenLakeRollout): NonNullable<FrozenLakeRollout["environment"]> {
  if (rollout.environment === undefined)
    throw new TypeError("the agent frozen_lake was run without an environment");
  return rollout.environment;
}
