/**
 * The texts of a rollout that can be searched, by who wrote them.
 *
 * Of each kind the beginning is searched: PostgreSQL holds at most a megabyte of words for a row, of which words of two letters
 * take six times their text.
 */

import type { Episode, ScoredEpisode } from "@hone/proto-gen/rollout";
import { chatOf } from "../chat/chat-view.ts";
import { wordsOf } from "./words.ts";

/** Where a text stands, and the weight by which PostgreSQL keeps its words apart. */
export const TextPlace = {
  /** What the model was shown: prompts, observations. */
  prompt: "a",
  /** What it answered, thoughts included. */
  answer: "b",
  /** Calls of tools and their results. */
  tool: "c",
  /** What judges said, and why the rollout ended. */
  judge: "d",
} as const;
export type TextPlace = keyof typeof TextPlace;

/** One text and its place. */
export interface PlacedText {
  readonly place: TextPlace;
  /** Index of the turn; null = none. */
  readonly turn: number | null;
  readonly text: string;
}

/** Of each place. */
const MAX_CHARACTERS = 32_768;

/** The words of each place, as `wordsOf` makes them. */
export type RolloutWords = Readonly<Record<TextPlace, string>>;

export const NO_WORDS: RolloutWords = { prompt: "", answer: "", tool: "", judge: "" };

/** Goes through the texts in the order in which they were written. */
export function* textsOf(scored: ScoredEpisode, episode: Episode): Iterable<PlacedText> {
  const source = { chatTemplate: undefined, hasEnvironment: false };
  for (const turn of episode.turns) {
    for (const { role, parts } of chatOf(turn, source)) {
      for (const part of parts) {
        if (part.kind === "call")
          yield { place: "tool", turn: turn.index, text: `${part.name} ${part.arguments}` };
        else if (part.kind === "result" || part.kind === "invalid_call")
          yield { place: "tool", turn: turn.index, text: part.text };
        else yield { place: role === "assistant" ? "answer" : "prompt", turn: turn.index, text: part.text };
      }
    }
  }
  for (const { judge, reason } of scored.scores) {
    yield { place: "judge", turn: null, text: reason === "" ? judge : `${judge}: ${reason}` };
  }
  if (episode.reason !== "") yield { place: "judge", turn: null, text: episode.reason };
}

export function rolloutWordsOf(scored: ScoredEpisode, episode: Episode): RolloutWords {
  const words: Record<TextPlace, string> = { prompt: "", answer: "", tool: "", judge: "" };
  for (const { place, text } of textsOf(scored, episode)) {
    const known = words[place];
    if (known.length >= MAX_CHARACTERS) continue;
    words[place] = `${known} ${wordsOf(text.slice(0, MAX_CHARACTERS - known.length))}`.trimStart();
  }
  return words;
}
