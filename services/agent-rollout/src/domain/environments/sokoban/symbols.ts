/** The symbols with which rooms are drawn: those of ROLL's two vocabularies, or any others. */

import { z } from "zod";

/** What a cell can show, in the order in which ROLL explains the symbols. */
export const CELL_KINDS = [
  "wall",
  "empty",
  "target",
  "boxOnTarget",
  "box",
  "player",
  "playerOnTarget",
] as const;

/** A symbol for each kind of cell. */
export type SokobanSymbols = Readonly<Record<(typeof CELL_KINDS)[number], string>>;

export const SYMBOL_PRESETS = {
  /** The usual ones. */
  roll: {
    wall: "#",
    empty: "_",
    target: "O",
    boxOnTarget: "√",
    box: "X",
    player: "P",
    playerOnTarget: "S",
  },
  /** Those of ROLL's tag SokobanDifferentGridVocab. */
  different_grid_vocab: {
    wall: "W",
    empty: ".",
    target: "G",
    boxOnTarget: "C",
    box: "B",
    player: "A",
    playerOnTarget: "@",
  },
} as const satisfies Record<string, SokobanSymbols>;

const presetNames = Object.keys(SYMBOL_PRESETS) as [
  keyof typeof SYMBOL_PRESETS,
  ...(keyof typeof SYMBOL_PRESETS)[],
];

const symbolSchema = z.string().regex(/^[^\p{C}\p{Zl}\p{Zp}]$/u, "one printed character");

/** The name of a preset, or seven symbols that differ. */
export const symbolsSchema = z.union(
  [
    z.enum(presetNames),
    z
      .strictObject({
        wall: symbolSchema,
        empty: symbolSchema,
        target: symbolSchema,
        boxOnTarget: symbolSchema,
        box: symbolSchema,
        player: symbolSchema,
        playerOnTarget: symbolSchema,
      } satisfies Record<keyof SokobanSymbols, typeof symbolSchema>)
      .refine(
        (symbols) => new Set(Object.values(symbols)).size === CELL_KINDS.length,
        "seven different characters",
      ),
  ],
  `${presetNames.join(", ")}, or one character for each of ${CELL_KINDS.join(", ")}, all of them different`,
);

/** The symbols that a configuration names or gives. */
export function symbolsOf(config: z.output<typeof symbolsSchema>): SokobanSymbols {
  return typeof config === "string" ? SYMBOL_PRESETS[config] : config;
}
