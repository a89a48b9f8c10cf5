/** How FrozenLake introduces itself to a model: ROLL's texts, and those of AgentJet's example. */

import { ActionFormat, type EnvironmentDescription } from "@hone/agents";
import { movePlayerTool } from "../grid-moves.ts";
import { MOVES } from "./lake.ts";

/** How the map is drawn. */
export interface LakeSymbols {
  /** Player, frozen cell, hole, goal, player in a hole, player on the goal. */
  readonly cells: readonly [string, string, string, string, string, string];
  /** What stands before and after each symbol. */
  readonly padding: readonly [before: string, after: string];
}

const CELLS = ["P", "_", "O", "G", "X", "√"] as const;
const MEANINGS = ["player", "empty", "hole", "goal", "player in hole", "player on goal"] as const;

/** What `info` holds on the state. */
export const LAKE_INFO_KEYS = [
  "player_row",
  "player_column",
  "goal_row",
  "goal_column",
  "neighbors",
  "hint",
] as const;

export const LAKE_PRESETS = ["roll", "agentjet"] as const;
export type LakePreset = (typeof LAKE_PRESETS)[number];

export const LAKE_SYMBOLS: Readonly<Record<LakePreset, LakeSymbols>> = {
  roll: { cells: CELLS, padding: ["", ""] },
  agentjet: { cells: CELLS, padding: [" ", " \t"] },
};

const MOVE_PLAYER = movePlayerTool(MOVES, { tool: "Move the player one cell on the frozen lake." });

/** @param format where the model's actions will stand. */
export function describeLake(preset: LakePreset, format: ActionFormat | undefined): EnvironmentDescription {
  const known = { actions: MOVES, infoKeys: LAKE_INFO_KEYS, tools: [MOVE_PLAYER] };
  switch (preset) {
    case "roll":
      return { ...known, instruction: rollInstruction(format) };
    case "agentjet":
      return { ...known, ...AGENTJET };
    default:
      return preset satisfies never;
  }
}

/** ROLL says that the ice is slippery also where it is not. */
function rollInstruction(format: ActionFormat | undefined): string {
  const how =
    format === ActionFormat.toolCall
      ? "Use the move_player tool to move the player."
      : "The answer must be one of action in a turn, format is <answer>Right</answer>";
  return [
    `You are solving the FrozenLake puzzle. Forbid the whole and go to the target. You may move to the unintended direction due to the slippery ice. ${how}`,
    "The meaning of each symbol in the state is:",
    CELLS.map((cell, index) => `${cell}: ${MEANINGS[index]}`).join(", "),
    "Your available actions are:",
    MOVES.join(", "),
  ].join("\n");
}

/** The texts of AgentJet's tutorial, whose users bring their curves. */
const AGENTJET = {
  systemPrompt: `You are a helpful assistant. You are walking on a frozen lake.

FrozenLake Quick Guide
Goal: Reach the goal (G). Player (P) and Goal (G) must overlap.

Symbols:
_ Frozen | O Hole | G Goal | P Player

Rules:
1. Avoid falling into holes (O).
2. Frozen tiles are slippery, you may move perpendicular to your intended direction.

Valid Action (separated by | ):
Up | Down | Left | Right

Rewards:
Fall into hole: 0
Reach goal: +1.0

You will be provided the current observation, please decide on the next Action.
You should show your short thought process and then input the final action in \`\`\` \`\`\`.
You should only output the NEXT ACTION at each interation in the \`\`\` \`\`\`. For example, if you want to move up, you should output \`\`\`Up\`\`\`.
You should plan ahead and need to achieve it in minimum number of steps.
You should be aware that frozen tiles can be slippery, but the chance is small and you should not overthink it.

Please show your thinking process and put the final action in \`\`\` \`\`\`. In every turn, the final action MUST be one of Up, Down, Left, Right.
`,
  promptTemplate: [
    "Current Observation ({turn}): ",
    "{observation}",
    "You have not achieved the goal, P has not reached G yet. Please give the next action.{hint}",
    "The maximum number of steps remaining is {actionsLeft}.",
  ].join("\n"),
  actionFormat: ActionFormat.codeBlock,
} as const;

/** Shown after a step that left the player where it was. */
export const AGENTJET_HINT =
  "\nYour last response is invalid. Your position didn't change at all. You may need to recheck your thinking process, action outputted, and the format of response. Remember, you should only output the NEXT ACTION at each interation in the ``` ```. For example, if you want to move up, you should output ```Up```.";
