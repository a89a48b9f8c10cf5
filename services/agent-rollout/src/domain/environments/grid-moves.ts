/** Moves in the grid games: how an action names one, and the tool by which models take them. */

import type { ActionTool } from "@hone/agents";

/** @returns a function that gives the move that an action names, ignoring white space and case; undefined = it names none. */
export function moveReader<Move extends string>(
  moves: readonly Move[],
): (action: string) => Move | undefined {
  const byName = new Map<string, Move>(moves.map((move) => [move.toLowerCase(), move]));
  return function moveNamed(action) {
    return byName.get(action.trim().toLowerCase());
  };
}

/** ROLL's tool `move_player{direction}`. @param texts what the model is told of the tool, and of its argument. */
export function movePlayerTool(
  moves: readonly string[],
  texts: { readonly tool: string; readonly direction?: string },
): ActionTool {
  const { tool: description, direction: ofDirection } = texts;
  return {
    name: "move_player",
    description,
    parameters: {
      type: "object",
      properties: {
        direction: {
          type: "string",
          enum: moves.map((move) => move.toLowerCase()),
          ...(ofDirection !== undefined && { description: ofDirection }),
        },
      },
      required: ["direction"],
    },
    actionOf: ({ direction }) => (typeof direction === "string" ? direction : undefined),
    argumentsOf: (action) => ({ direction: action.toLowerCase() }),
  };
}
