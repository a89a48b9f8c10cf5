/**
 * The agent's YAML file: the prompts for the model, and how many earlier turns it is shown.
 *
 * The defaults are ROLL's common prompts. A template's placeholders are those of {@link PLACEHOLDERS}; other braces
 * are left as they are.
 */

import { z } from "zod";
import { MOVES } from "../../environments/frozen-lake/lake.ts";

/** What may stand in braces in a template. */
export const PLACEHOLDERS = [
  /** The map. */
  "observation",
  /** Number of the turn, from 1. */
  "turn",
  /** Number of turns that are left, this one included. */
  "actionsLeft",
  /** The moves, separated by commas. */
  "actions",
  /** Most tokens of one answer. */
  "maxNewTokens",
  // The environment's `info` on the state:
  "player_row",
  "player_column",
  "goal_row",
  "goal_column",
  /** The cells to the left, below, to the right and above, as on the map. */
  "neighbors",
] as const;

const ROLL_SYSTEM_PROMPT =
  "You're a helpful assistant. You are a good game player. You are aiming to get high reward in the game.";
const ROLL_INSTRUCTION = [
  "You are solving the FrozenLake puzzle. Forbid the whole and go to the target. You may move to the unintended direction due to the slippery ice. " +
    "The answer must be one of action in a turn, format is <answer>Right</answer>",
  "The meaning of each symbol in the state is:",
  "P: player, _: empty, O: hole, G: goal, X: player in hole, √: player on goal",
  "Your available actions are:",
  MOVES.join(", "),
].join("\n");
const ROLL_PROMPT_TEMPLATE = [
  "Turn {turn}:",
  "Observation:",
  "{observation}",
  "Strictly follow this format:",
  "1. output format is '<answer> [your answer] </answer>' with no extra text. ",
  "2. You have {actionsLeft} actions left. ",
  "3. Max response length: {maxNewTokens} words (tokens).",
  "Decide the next action:",
].join("\n");

const PLACEHOLDER = /\{([A-Za-z_]+)\}/g;

const template = z.string().superRefine((text, context) => {
  for (const [, name] of text.matchAll(PLACEHOLDER)) {
    if (name !== undefined && !PLACEHOLDERS.some((known) => known === name)) {
      context.addIssue({
        code: "custom",
        input: text,
        message: `a template whose placeholders are among ${PLACEHOLDERS.map((known) => `{${known}}`).join(", ")}`,
      });
    }
  }
});

export const frozenLakeAgentConfigSchema = z.strictObject({
  /** First message; empty = none. */
  systemPrompt: z.string().default(ROLL_SYSTEM_PROMPT),
  /** Placed on lines of its own before the first prompt that the model is shown; empty = none. */
  instruction: z.string().default(ROLL_INSTRUCTION),
  /** One turn's prompt. */
  promptTemplate: template.default(ROLL_PROMPT_TEMPLATE),
  /** How many earlier turns the model is shown; null = all. With 0 every turn is a short prompt of its own. */
  historyTurns: z.number().int().min(0).nullable().default(null),
});
export type FrozenLakeAgentConfig = z.output<typeof frozenLakeAgentConfigSchema>;

/** Replaces the placeholders of a template by values. */
export function fillTemplate(
  text: string,
  values: Readonly<Partial<Record<(typeof PLACEHOLDERS)[number], string | number>>>,
): string {
  return text.replaceAll(PLACEHOLDER, (whole, name: string) => {
    const value: unknown = Reflect.get(values, name);
    return value === undefined ? whole : String(value);
  });
}
