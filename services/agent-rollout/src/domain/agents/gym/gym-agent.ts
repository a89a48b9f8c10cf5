/**
 * The agent `gym`, which plays in any environment: the model answers and the environment moves, until the episode is over.
 *
 * Y1: the model sees the whole history, its last turns or the present turn alone (`historyTurns`).
 * Y2: the environment gets the action that the answer holds, by the action format; the empty text where it holds none.
 * Y3: in the format `tool_call` an observation is the answer to the call that led to it. What stands first in the part of the
 *     history that the model sees is a prompt, since its call is not shown.
 *
 * With LangGraph's functional API all turns are one step of the graph, as a turn has no branches and no parallel work. With
 * a node for the model and one for the environment, LangGraph would take 1.3 ms of CPU for five turns instead of 0.2.
 */

import {
  ActionFormat,
  type ActionTool,
  type AgentDefinition,
  type AgentEnvironment,
  type AgentResult,
  type AgentRollout,
  type EnvironmentDescription,
  type EnvironmentMessage,
  type EnvironmentReset,
  type InputProblem,
  rolloutOf,
} from "@hone/agents";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { entrypoint } from "@langchain/langgraph";
import { readAction, writeAction } from "./action-formats.ts";
import { type GymConfig, type GymPrompts, gymConfigSchema, promptsOf } from "./config.ts";
import { fillTemplate, PLACEHOLDERS, placeholdersOf } from "./prompt-template.ts";

/** What the model is shown in one turn: a prompt, or the environment's own messages. */
type Shown = string | readonly BaseMessage[];

/** An earlier turn. */
interface PastTurn {
  readonly shown: Shown;
  readonly answer: AIMessage;
}

/** How an episode ended. */
interface EpisodeEnd {
  readonly steps: number;
  /** Whether the environment's rules ended it, and not a limit. */
  readonly isDone: boolean;
}

export const gymAgent: AgentDefinition<GymConfig, ReturnType<typeof buildGraph>> = {
  configSchema: gymConfigSchema,
  needsEnvironment: true,
  buildGraph,
  async run(graph, rollout): Promise<AgentResult> {
    const start = await environmentOf(rollout).reset();
    const { steps, isDone } = await graph.invoke(start, { configurable: { rollout } });
    return { isTruncated: !isDone, metrics: { steps, done: isDone ? 1 : 0 } };
  },
  checkEnvironment(config, describe) {
    const prompts = promptsOf(config, describe);
    return [...templateProblems(config, prompts, describe()), ...toolProblems(config, prompts)];
  },
  writeAction(config, describe, action) {
    const { actionFormat, tools } = promptsOf(config, describe);
    return writeAction(action, actionFormat, tools);
  },
};

function buildGraph(config: GymConfig) {
  return entrypoint("gym", async (start: EnvironmentReset, run): Promise<EpisodeEnd> => {
    const rollout = rolloutOf<GymConfig>(run);
    const environment = environmentOf(rollout);
    const prompts = promptsOf(config, (format) => environment.describe(format));
    const model = modelOf(rollout, prompts);
    const { historyTurns } = config;
    // Only turns that will be shown again are kept, as thousands of rollouts are in memory at once.
    const past: PastTurn[] = [];
    let state = start;
    for (let turn = 1; ; turn++) {
      const shown = shownOf(state, prompts, rollout, turn);
      const answer = await model.invoke(conversation(prompts, past, shown), run);
      past.push({ shown, answer });
      if (historyTurns !== null && past.length > historyTurns) past.shift();
      const step = await environment.step(readAction(answer, prompts.actionFormat, prompts.tools)); // Y2
      if (step.terminated || step.truncated || turn >= rollout.maxTurns) {
        return { steps: turn, isDone: step.terminated && !step.truncated };
      }
      state = step;
    }
  });
}

function modelOf({ model, config }: AgentRollout<GymConfig>, { actionFormat, tools }: GymPrompts) {
  if (actionFormat !== ActionFormat.toolCall) return model;
  const { toolCallFormat } = config;
  const writing = toolCallFormat === "auto" ? model : model.withToolCallFormat(toolCallFormat);
  return writing.bindTools(tools.map(chatToolOf));
}

function chatToolOf({ name, description, parameters }: ActionTool) {
  return { type: "function" as const, function: { name, description, parameters } };
}

function shownOf(
  { observation, info, messages }: EnvironmentReset,
  prompts: GymPrompts,
  { maxTurns, maxNewTokens }: AgentRollout<GymConfig>,
  turn: number,
): Shown {
  if (messages !== undefined) return messages.map(toLangChain);
  const { actions, firstPromptTemplate, promptTemplate } = prompts;
  const figures = { observation, turn, actionsLeft: maxTurns - turn + 1, actions, maxNewTokens };
  return fillTemplate(turn === 1 ? firstPromptTemplate : promptTemplate, figures, info);
}

function toLangChain({ role, content }: EnvironmentMessage): BaseMessage {
  if (role === "system") return new SystemMessage(content);
  return role === "user" ? new HumanMessage(content) : new AIMessage(content);
}

/** What the model is shown: the earlier turns, as far as they are kept, and this turn (Y1). */
function conversation(prompts: GymPrompts, past: readonly PastTurn[], shown: Shown): BaseMessage[] {
  const { systemPrompt, instruction, instructionPlace } = prompts;
  const messages: BaseMessage[] = [];
  const first = past[0]?.shown ?? shown;
  if (typeof first !== "string") {
    messages.push(...first);
  } else {
    const isInSystem = instructionPlace === "system";
    const system = joined([systemPrompt, isInSystem ? instruction : ""], "\n\n");
    if (system !== "") messages.push(new SystemMessage(system));
    messages.push(new HumanMessage(isInSystem ? first : joined([instruction, first], "\n")));
  }
  for (const [index, { answer }] of past.entries()) {
    messages.push(answer, ...following(answer, past[index + 1]?.shown ?? shown));
  }
  return messages;
}

/** What follows an answer: the replies to its calls (Y3), or the next prompt. */
function following(answer: AIMessage, shown: Shown): readonly BaseMessage[] {
  if (typeof shown !== "string") return shown;
  const calls = answer.tool_calls ?? [];
  if (calls.length === 0) return [new HumanMessage(shown)];
  return calls.map(({ id = "", name }, index) => {
    const content = index === 0 ? shown : "Only the first call of a turn is carried out.";
    return new ToolMessage({ content, tool_call_id: id, name });
  });
}

function joined(texts: readonly string[], separator: string): string {
  return texts.filter((text) => text !== "").join(separator);
}

function environmentOf(rollout: AgentRollout<GymConfig>): AgentEnvironment {
  if (rollout.environment === undefined) {
    throw new TypeError("the agent gym was run without an environment");
  }
  return rollout.environment;
}

/** Placeholders that the environment will not fill. */
function templateProblems(
  config: GymConfig,
  { promptTemplate }: GymPrompts,
  { infoKeys }: EnvironmentDescription,
): InputProblem[] {
  if (config.promptTemplate === undefined || infoKeys === undefined) return [];
  const known: readonly string[] = [...PLACEHOLDERS, ...infoKeys];
  if (placeholdersOf(promptTemplate).every((name) => known.includes(name))) return [];
  return [
    {
      path: ["promptTemplate"],
      value: promptTemplate,
      allowed: `a template whose placeholders are among ${known.map((name) => `{${name}}`).join(", ")}`,
    },
  ];
}

function toolProblems(
  { actionFormat: asked }: GymConfig,
  { actionFormat, tools }: GymPrompts,
): InputProblem[] {
  if (actionFormat !== ActionFormat.toolCall || tools.length > 0) return [];
  const others = Object.values(ActionFormat).filter((format) => format !== ActionFormat.toolCall);
  return [
    {
      path: ["actionFormat"],
      value: asked,
      allowed: `one of ${others.join(", ")}, as the environment has no tools`,
    },
  ];
}
