/**
 * How the agent `gym` words its prompts where neither its configuration nor the environment says it: the prompts of ROLL
 * (https://github.com/alibaba/ROLL), which users bring their models and curves from, and none at all.
 */

import { ActionFormat } from "@hone/agents";

/** What a preset says. */
export interface PromptPreset {
  /** The first message; empty = none. */
  readonly systemPrompt: string;
  /** Where the instruction stands: before the first prompt, or at the end of the system message. */
  readonly instructionPlace: "prompt" | "system";
  /** The prompt of the first turn; absent = as of the others. */
  readonly firstPromptTemplate?: string;
  readonly promptTemplate: string;
  readonly actionFormat: ActionFormat;
}

const ROLL_SYSTEM_PROMPT =
  "You're a helpful assistant. You are a good game player. You are aiming to get high reward in the game.";

const roll: PromptPreset = {
  systemPrompt: ROLL_SYSTEM_PROMPT,
  instructionPlace: "prompt",
  promptTemplate: [
    "Turn {turn}:",
    "Observation:",
    "{observation}",
    "Strictly follow this format:",
    "1. output format is '<answer> [your answer] </answer>' with no extra text. ",
    "2. You have {actionsLeft} actions left. ",
    "3. Max response length: {maxNewTokens} words (tokens).",
    "Decide the next action:",
  ].join("\n"),
  actionFormat: ActionFormat.answer,
};

const rollReminder = [
  "",
  "",
  "",
  "<system-reminder>",
  "IMPORTANT: Ensure that your response is the format of '<answer> [your answer] </answer>',  with no extra text, eg. <answer>Right</answer>.",
  "Your available actions are:",
  "{actions}",
  ". </system-reminder>",
  "",
  "Decide the next action:",
  "",
].join("\n");

/** Presets by name. */
export const PROMPT_PRESETS = {
  /** Prompts of ROLL's trajectories. */
  roll,
  /** The same, with an action only after thoughts. */
  roll_think: { ...roll, actionFormat: ActionFormat.thinkAnswer },
  /** ROLL's conversations of an environment that keeps its own history. */
  roll_native: {
    systemPrompt: ROLL_SYSTEM_PROMPT,
    instructionPlace: "system",
    firstPromptTemplate: `Here is the current state:\n{observation}${rollReminder}`,
    promptTemplate: `Current state:\n{observation}${rollReminder}`,
    actionFormat: ActionFormat.answer,
  },
  /** The same with tools instead of tags. */
  roll_tools: {
    systemPrompt: ROLL_SYSTEM_PROMPT,
    instructionPlace: "system",
    firstPromptTemplate: "Here is the current state:\n{observation}",
    promptTemplate: "Current state:\n{observation}",
    actionFormat: ActionFormat.toolCall,
  },
  /** The observation alone, and the whole answer as the action. */
  plain: {
    systemPrompt: "",
    instructionPlace: "prompt",
    promptTemplate: "{observation}",
    actionFormat: ActionFormat.text,
  },
} as const satisfies Record<string, PromptPreset>;
export type PromptPresetName = keyof typeof PROMPT_PRESETS;
