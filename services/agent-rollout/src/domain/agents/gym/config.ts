/** The YAML file of the agent `gym`, and the prompts that follow from it and from the environment. */

import {
  ActionFormat,
  type ActionTool,
  type AgentEnvironment,
  type EnvironmentDescription,
  TOOL_CALL_FORMAT_NAMES,
} from "@hone/agents";
import { z } from "zod";
import { PROMPT_PRESETS, type PromptPreset, type PromptPresetName } from "./presets.ts";

const presetNames = Object.keys(PROMPT_PRESETS) as [PromptPresetName, ...PromptPresetName[]];

export const gymConfigSchema = z.strictObject({
  /** The prompts where neither the keys below nor the environment gives one. @default `roll_tools` for tool calls, else `roll` */
  preset: z.enum(presetNames).optional(),
  /** First message; empty = none. */
  systemPrompt: z.string().optional(),
  /** What the model is told about the task; empty = nothing. @default what the environment says */
  instruction: z.string().optional(),
  /** The prompt of each turn. */
  promptTemplate: z.string().optional(),
  /** Where the model's action stands in its answer. */
  actionFormat: z.enum(Object.values(ActionFormat) as [ActionFormat, ...ActionFormat[]]).optional(),
  /** How the model writes tool calls, for the action format `tool_call`. */
  toolCallFormat: z.enum(["auto", ...TOOL_CALL_FORMAT_NAMES] as const).default("auto"),
  /** How many earlier turns the model is shown; null = all. With 0 every turn is a prompt of its own. */
  historyTurns: z.number().int().min(0).nullable().default(null),
});
export type GymConfig = z.output<typeof gymConfigSchema>;

/** What a rollout's prompts are made of. */
export interface GymPrompts extends Omit<PromptPreset, "firstPromptTemplate"> {
  readonly instruction: string;
  readonly firstPromptTemplate: string;
  /** The environment's actions, separated by commas. */
  readonly actions: string;
  readonly tools: readonly ActionTool[];
}

/** The configuration comes first, then the environment, then the preset. */
export function promptsOf(config: GymConfig, describe: AgentEnvironment["describe"]): GymPrompts {
  const named = config.preset === undefined ? undefined : PROMPT_PRESETS[config.preset];
  const actionFormat =
    config.actionFormat ?? named?.actionFormat ?? describe().actionFormat ?? PROMPT_PRESETS.roll.actionFormat;
  const own = describe(actionFormat);
  const preset: PromptPreset =
    named ?? (actionFormat === ActionFormat.toolCall ? PROMPT_PRESETS.roll_tools : PROMPT_PRESETS.roll);
  // A preset that is named is meant: the environment's own wording gives way to it, but for the instruction.
  const wording = named === undefined ? { ...preset, ...definedOf(own) } : preset;
  const promptTemplate = config.promptTemplate ?? wording.promptTemplate;
  const isOfPreset = promptTemplate === preset.promptTemplate;
  return {
    systemPrompt: config.systemPrompt ?? wording.systemPrompt,
    instructionPlace: preset.instructionPlace,
    instruction: config.instruction ?? own.instruction ?? "",
    promptTemplate,
    firstPromptTemplate: (isOfPreset ? preset.firstPromptTemplate : undefined) ?? promptTemplate,
    actionFormat,
    actions: (own.actions ?? []).join(", "),
    tools: own.tools ?? [],
  };
}

function definedOf({ systemPrompt, promptTemplate }: EnvironmentDescription) {
  return {
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(promptTemplate !== undefined && { promptTemplate }),
  };
}
