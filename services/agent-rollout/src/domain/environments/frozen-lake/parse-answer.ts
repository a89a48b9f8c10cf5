/** Reads a move from the model's answer, by ROLL's rules. */

import { MOVES, type Move } from "./lake.ts";

const OPEN = "<answer>";
const CLOSE = "</answer>";
/** Control tokens that a model may have written as text. */
const CONTROL_TOKENS = /<\|im_(?:start|end)\|>/g;
const BY_NAME = new Map<string, Move>(MOVES.map((move) => [move.toLowerCase(), move]));

/**
 * Reads the move inside `<answer>…</answer>`, ignoring white space and case; undefined when there is none. The first of
 * several counts. The time is linear in the length of the text, whatever the model wrote.
 */
export function parseAnswer(text: string): Move | undefined {
  const plain = text.replaceAll(CONTROL_TOKENS, "");
  const begin = plain.indexOf(OPEN);
  const end = begin < 0 ? -1 : plain.indexOf(CLOSE, begin + OPEN.length);
  if (end < 0) return undefined;
  return BY_NAME.get(
    plain
      .slice(begin + OPEN.length, end)
      .trim()
      .toLowerCase(),
  );
}

/** Writes the answer that {@link parseAnswer} reads as this move. */
export function formatAnswer(move: Move): string {
  return `<answer>${move}</answer>`;
}
