/** How Sokoban introduces itself to a model: ROLL's texts. */

import { ActionFormat, type EnvironmentDescription } from "@hone/agents";
import { movePlayerTool } from "../grid-moves.ts";
import { MOVES } from "./rooms/room.ts";
import { CELL_KINDS, type SokobanSymbols } from "./symbols.ts";

const MEANINGS: Readonly<Record<keyof SokobanSymbols, string>> = {
  wall: "wall",
  empty: "empty",
  target: "target",
  boxOnTarget: "box on target",
  box: "box",
  player: "player",
  playerOnTarget: "player on target",
};

/** What `info` holds on the state. */
const INFO_KEYS = ["player_row", "player_column", "neighbors", "boxes_on_target"] as const;
/** The same in rooms with one box. */
const INFO_KEYS_OF_ONE_BOX = ["box_row", "box_column", "target_row", "target_column"] as const;

const MOVE_PLAYER = movePlayerTool(MOVES, {
  tool: "Move the player in the specified direction in the Sokoban game",
  direction: "Direction to move: up, down, left, or right",
});

/** @param format where the model's actions will stand. */
export function describeSokoban(
  symbols: SokobanSymbols,
  numBoxes: number,
  format: ActionFormat | undefined,
): EnvironmentDescription {
  return {
    instruction: instructionOf(symbols, format),
    actions: MOVES,
    infoKeys: numBoxes === 1 ? [...INFO_KEYS, ...INFO_KEYS_OF_ONE_BOX] : INFO_KEYS,
    tools: [MOVE_PLAYER],
  };
}

function instructionOf(symbols: SokobanSymbols, format: ActionFormat | undefined): string {
  const how =
    format === ActionFormat.toolCall
      ? "Use the move_player tool to move the player."
      : "The answer must be one of action in a turn, format is <answer>Right</answer>.";
  return [
    `You are solving the Sokoban puzzle. You are the player and you need to push all boxes to targets. When you are right next to a box, you can push it by moving in the same direction. You cannot push a box through a wall, and you cannot pull a box. ${how}`,
    "The meaning of each symbol in the state is:",
    CELL_KINDS.map((kind) => `${symbols[kind]}: ${MEANINGS[kind]}`).join(", "),
    "Your available actions are:",
    MOVES.join(", "),
  ].join("\n");
}
