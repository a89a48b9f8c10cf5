/** For tests: what ROLL's Sokoban does, as fixtures/README.md describes it. */

import { readFileSync } from "node:fs";
import { type Room, roomOfRows } from "./rooms/room.ts";
import { SYMBOL_PRESETS } from "./symbols.ts";

export interface RollStep {
  readonly action: string;
  readonly parsed: string | null;
  readonly observation: readonly string[];
  readonly reward: number;
  readonly terminated: boolean;
  readonly truncated: boolean;
  readonly metrics: {
    readonly action_is_effective: boolean;
    readonly action_is_valid: boolean;
    readonly success: boolean;
  };
}

interface RollRoom {
  readonly room: readonly string[];
  readonly shortest_solution: string;
}

interface RollSokoban {
  readonly transcripts: readonly {
    readonly name: string;
    readonly options: {
      readonly dim_room: readonly [number, number];
      readonly num_boxes: number;
      readonly search_depth: number;
      readonly max_steps: number;
      readonly format_penalty: number;
    };
    readonly initial: readonly string[];
    readonly steps: readonly RollStep[];
  }[];
  readonly rooms_6x6_1_box: readonly RollRoom[];
  readonly rooms_10x10_2_boxes: readonly RollRoom[];
  readonly reverse_play: readonly {
    readonly search_depth: number;
    readonly states: number;
    readonly solved: readonly string[];
    readonly pulled: readonly string[] | null;
    readonly displacement: number;
  }[];
}

export const rollSokoban = JSON.parse(
  readFileSync(new URL("./fixtures/roll-sokoban.json", import.meta.url), "utf8"),
) as RollSokoban;

/** A room in ROLL's symbols. */
export function roomOf(...rows: readonly string[]): Room {
  return roomOfRows(rows, SYMBOL_PRESETS.roll);
}
