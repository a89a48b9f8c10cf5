/** Reading a move from what the model wrote, by ROLL's rules. */

import { MOVES, type Move } from "./lake.ts";

/** The first of several counts; it may span lines. */
const ANSWER = /<answer>(.*?)<\/answer>/s;
/** Control tokens that a model may have spelt out. */
const CONTROL_TOKENS = /<\|im_(?:start|end)\|>/g;
const BY_NAME = new Map<string, Move>(MOVES.map((move) => [move.toLowerCase(), move]));

/** The move inside `<answer>…</answer>`, trimmed, in any case; undefined when there is none. */
export function parseAnswer(text: string): Move | undefined {
  const answer = ANSWER.exec(text.replaceAll(CONTROL_TOKENS, ""))?.[1];
  return answer === undefined ? undefined : BY_NAME.get(answer.trim().toLowerCase());
}

/** The answer that {@link parseAnswer} reads as this move. */
export function formatAnswer(move: Move): string {
  return `<answer>${move}</answer>`;
}
