/**
 * Templates of prompts. A placeholder is a name in braces: one of {@link PLACEHOLDERS}, or an entry of the environment's
 * `info`. Braces around anything else are left as they are.
 */

import { TerminalError } from "@hone/core";

/** What may stand in braces in every environment. */
export const PLACEHOLDERS = [
  "observation",
  /** Number of the turn, from 1. */
  "turn",
  /** Number of turns that are left, this one included. */
  "actionsLeft",
  /** The environment's actions, separated by commas. */
  "actions",
  /** Most tokens of one answer. */
  "maxNewTokens",
  // The same by ROLL's names:
  "turn_idx",
  "actions_left",
  "max_response_length",
] as const;
export type Placeholder = (typeof PLACEHOLDERS)[number];

type PromptValue = string | number | boolean | null;

/** What fills the placeholders of one turn. */
export interface PromptFigures {
  readonly observation: string;
  readonly turn: number;
  readonly actionsLeft: number;
  readonly actions: string;
  readonly maxNewTokens: number;
}

const PLACEHOLDER = /\{([A-Za-z_]+)\}/g;

/** The names in braces, in order. */
export function placeholdersOf(template: string): string[] {
  return Array.from(template.matchAll(PLACEHOLDER), ([, name]) => name!);
}

/**
 * Replaces the placeholders of a template.
 * @throws {TerminalError} when one is neither a placeholder nor an entry of `info`.
 */
export function fillTemplate(
  template: string,
  figures: PromptFigures,
  info: Readonly<Record<string, PromptValue>>,
): string {
  return template.replaceAll(PLACEHOLDER, (_whole, name: string) => {
    const value = Object.hasOwn(info, name) ? info[name] : figureOf(name, figures);
    if (value === undefined) {
      const known = [...PLACEHOLDERS, ...Object.keys(info)].map((each) => `{${each}}`).join(", ");
      throw new TerminalError(
        "UNKNOWN_PLACEHOLDER",
        `the prompt template holds {${name}}, which the environment does not tell; it may hold ${known}`,
      );
    }
    return String(value);
  });
}

function figureOf(name: string, figures: PromptFigures): PromptValue | undefined {
  switch (name as Placeholder) {
    case "observation":
      return figures.observation;
    case "turn":
    case "turn_idx":
      return figures.turn;
    case "actionsLeft":
    case "actions_left":
      return figures.actionsLeft;
    case "actions":
      return figures.actions;
    case "maxNewTokens":
    case "max_response_length":
      return figures.maxNewTokens;
    default:
      return undefined;
  }
}
