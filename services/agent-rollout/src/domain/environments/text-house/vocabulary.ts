/**
 * All words of observations and commands, from which a tokenizer of whole words can be made for a tiny model.
 *
 * A word is a run of letters, a digit, or one of the marks . , and : as {@link wordsOf} splits them. White space stands only
 * between words. The instruction, which a run may replace, uses other words too.
 */

import {
  DIRECTIONS,
  KEY,
  METALS,
  OBJECT_KINDS,
  type ObjectKindName,
  PLACE_KINDS,
  ROOM_KINDS,
} from "./lexicon.ts";
import { pluralOf } from "./texts.ts";

/** The words of the sentences and commands, without the names of things. */
const SENTENCE_WORDS = `
  Available In It Nothing On That The You Your
  a about actions already an and are at behind carry clean close closed cold command cool dirty does done door examine find fit
  from go happens has have heat hot house in inventory is it lamp light lock locked look may not nothing now of off on open
  put rooms same see special take task the them these through to turn two unlock unlocked use well which with you your
`;

const DIGITS = "0123456789";
const MARKS = ".,:";

export const HOUSE_VOCABULARY: readonly string[] = [
  ...new Set([
    ...wordsOf(SENTENCE_WORDS),
    ...DIGITS,
    ...MARKS,
    ...DIRECTIONS,
    ...METALS,
    KEY,
    pluralOf(KEY),
    ...Object.keys(PLACE_KINDS),
    ...Object.keys(ROOM_KINDS).flatMap(wordsOf),
    ...(Object.keys(OBJECT_KINDS) as ObjectKindName[]).flatMap((kind) => [kind, pluralOf(kind)]),
  ]),
].sort();

/** The words of a text, in order. */
export function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z]+|[^A-Za-z\s]/g) ?? [];
}
