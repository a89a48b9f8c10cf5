/** Cuts a tool's answer to a budget of tokens, and marks the cut in the text. */

import type { Tokenizer } from "@hone/tokenizer";

/** Which part of a long answer is removed. */
export const CutSide = {
  /** The end is kept. */
  left: "left",
  /** The beginning and the end are kept. */
  middle: "middle",
  /** The beginning is kept. */
  right: "right",
} as const;
export type CutSide = (typeof CutSide)[keyof typeof CutSide];

/** More characters than any text has per token on average: a longer text is cut before it is encoded. */
const MAX_CHARACTERS_PER_TOKEN = 64;

/**
 * @param maxTokens budget of the whole answer, including the mark; at least 1.
 * @returns the answer, unchanged if it fits.
 */
export function cutAnswer(
  text: string,
  { tokenizer, maxTokens, side }: { tokenizer: Tokenizer; maxTokens: number; side: CutSide },
): { text: string; isCut: boolean } {
  const bounded = boundCharacters(text, maxTokens * MAX_CHARACTERS_PER_TOKEN, side);
  const ids = tokenizer.encode(bounded);
  if (bounded === text && ids.length <= maxTokens) return { text, isCut: false };
  const mark = `[... ${Math.max(1, ids.length - maxTokens)}${bounded === text ? "" : " or more"} tokens cut ...]`;
  let room = maxTokens - tokenizer.encode(`\n${mark}\n`).length;
  // Joined, two parts and a mark may have more tokens than separately.
  for (; room > 0; room--) {
    const cut = join(parts(ids, room, side, tokenizer), mark, side);
    if (tokenizer.encode(cut).length <= maxTokens) return { text: cut, isCut: true };
  }
  return { text: tokenizer.decode(tokenizer.encode(mark).slice(0, maxTokens)), isCut: true };
}

interface Parts {
  readonly begin: string;
  readonly end: string;
}

function parts(ids: readonly number[], room: number, side: CutSide, tokenizer: Tokenizer): Parts {
  const numBegin = side === CutSide.left ? 0 : side === CutSide.right ? room : Math.ceil(room / 2);
  const numEnd = room - numBegin;
  return {
    begin: whole(tokenizer.decode(ids.slice(0, numBegin))),
    end: numEnd === 0 ? "" : whole(tokenizer.decode(ids.slice(-numEnd))),
  };
}

function join({ begin, end }: Parts, mark: string, side: CutSide): string {
  if (side === CutSide.left) return `${mark}\n${end}`;
  return side === CutSide.right ? `${begin}\n${mark}` : `${begin}\n${mark}\n${end}`;
}

/** Removes incomplete characters, which remain where a character was cut between two tokens. */
function whole(text: string): string {
  return text.replace(/^\uFFFD+|\uFFFD+$/g, "");
}

function boundCharacters(text: string, maxCharacters: number, side: CutSide): string {
  if (text.length <= maxCharacters) return text;
  if (side === CutSide.left) return text.slice(-maxCharacters);
  if (side === CutSide.right) return text.slice(0, maxCharacters);
  const half = Math.ceil(maxCharacters / 2);
  return text.slice(0, half) + text.slice(-half);
}
