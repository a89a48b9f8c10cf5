/**
 * Keeps spelled-out control tokens as text: `<|im_end|>` in a user's question or a tool's answer must not end the turn.
 *
 * P1: messages of users, tools and system prompts are text. Messages of the assistant are what the model writes, so a
 *     control token in them counts as one.
 * P2: the chat template gets a mark in the place of each spelled token and passes it on as text. Afterwards the marks are
 *     replaced by the spellings, and their positions are kept for the encoding.
 * P3: a spelling is encoded in pieces that contain no control token; the text around it is encoded as usual.
 */

import type { ChatMessage } from "./chat-message.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Messages with marks, and the spelled token of each mark. */
export interface MarkedMessages {
  readonly messages: readonly ChatMessage[];
  readonly spelled: readonly string[];
}

/** Half-open range of a text that spells a control token. */
export interface SpelledRange {
  readonly begin: number;
  readonly end: number;
}

/** A text with the ranges of its spelled control tokens, in order. */
export interface SpelledText {
  readonly text: string;
  readonly ranges: readonly SpelledRange[];
}

/** Noncharacters, which text should not contain. If a text contains the first one, that character is marked as well. */
const BEGIN = "\uFDD0";
const END = "\uFDD1";
const MARK = new RegExp(`${BEGIN}(\\d+)${END}`, "g");
const NONE: readonly never[] = [];

/** Replaces spelled tokens by marks (P1, P2). */
export function markSpelled(messages: readonly ChatMessage[], tokenizer: Tokenizer): MarkedMessages {
  const { controlPattern } = tokenizer;
  const isSpelling = ({ role, content }: ChatMessage) =>
    role !== "assistant" && (content.search(controlPattern) >= 0 || content.includes(BEGIN));
  if (!messages.some(isSpelling)) return { messages, spelled: NONE };
  const pattern = new RegExp(`${BEGIN}|${controlPattern.source}`, "g");
  const spelled: string[] = [];
  const marked = messages.map((message) =>
    isSpelling(message)
      ? {
          ...message,
          content: message.content.replace(pattern, (token) => `${BEGIN}${spelled.push(token) - 1}${END}`),
        }
      : message,
  );
  return { messages: marked, spelled };
}

/** Puts the spellings back (P2). */
export function unmarkSpelled(rendered: string, spelled: readonly string[]): SpelledText {
  if (spelled.length === 0) return { text: rendered, ranges: NONE };
  const ranges: SpelledRange[] = [];
  let text = "";
  let from = 0;
  for (const match of rendered.matchAll(MARK)) {
    const token = spelled[Number(match[1])];
    // Not one of the marks that were inserted: the template took a text apart.
    if (token === undefined) continue;
    text += rendered.slice(from, match.index);
    ranges.push({ begin: text.length, end: text.length + token.length });
    text += token;
    from = match.index + match[0].length;
  }
  return { text: text + rendered.slice(from), ranges };
}

/** Token ids of a text from a given position (P3). */
export function encodeSpelled(
  tokenizer: Tokenizer,
  { text, ranges }: SpelledText,
  from = 0,
): readonly number[] {
  const inside = ranges.filter(({ begin }) => begin >= from);
  if (inside.length === 0) return tokenizer.encode(text.slice(from));
  const ids: number[] = [];
  let at = from;
  for (const { begin, end } of inside) {
    ids.push(...tokenizer.encode(text.slice(at, begin)));
    for (const piece of piecesOf(text.slice(begin, end), tokenizer.controlPattern))
      ids.push(...tokenizer.encode(piece));
    at = end;
  }
  return [...ids, ...tokenizer.encode(text.slice(at))];
}

/** Splits a spelling after its first character, and splits the rest again as long as it contains a control token. */
function piecesOf(spelling: string, controlPattern: RegExp): string[] {
  if (spelling.search(controlPattern) < 0) return [spelling];
  const [first = ""] = spelling;
  // A control token of one character cannot be split and is left out.
  return first === spelling ? [] : [first, ...piecesOf(spelling.slice(first.length), controlPattern)];
}
