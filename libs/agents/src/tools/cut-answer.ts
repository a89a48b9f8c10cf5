/** A tool's answer within a budget of tokens; where it was cut stands in the text. */

import type { Tokenizer } from "@hone/tokenizer";

/** Which part of a long answer goes. */
export const CutSide = {
  /** The end is kept. */
  left: "left",
  /** The begin and the end are kept. */
  middle: "middle",
  /** The begin is kept. */
  right: "right",
} as const;
export type CutSide = (typeof CutSide)[keyof typeof CutSide];

/** Tokens are some characters long, never more than this on average: what is longer is cut before it is encoded. */
const MAX_CHARACTERS_PER_TOKEN = 64;

/**
 * @param maxTokens budget of the whole answer, the mark included; at least 1.
 * @returns the answer as it was where it fits.
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
  // Two parts and a mark may join to more tokens than they have apart.
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

/** Without the halves of characters that tokens end in. */
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
