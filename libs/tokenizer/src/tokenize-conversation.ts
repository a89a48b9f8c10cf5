/**
 * Turns a written conversation into the token ids that a model would hold if it had given the answers itself, and marks the
 * tokens of the answers.
 *
 * An answer consists of the ids of its text and the stop token that the template puts after it; the text between answers
 * comes from the template (see chat-renderer.ts). If the template changes earlier turns, a new sample starts, so that each
 * answer is marked once, in the context in which the model would give it.
 */

import type { ChatMessage } from "./chat-message.ts";
import type { ChatRenderer } from "./chat-renderer.ts";

/** A sample of T tokens in order. */
export interface TokenizedSample {
  /** [T] */
  readonly tokenIds: Uint32Array;
  /** [T] 1 = a token of the assistant's answer, including its stop token. */
  readonly lossMask: Uint8Array;
}

/** A sample that may continue with the next answer. */
interface UnfinishedSample {
  tokenIds: number[];
  lossMask: number[];
  /** The text of the prompt before its last answer. */
  shownText: string;
  answer: { readonly content: string; readonly stopTokenId: number | undefined };
}

/**
 * The samples of a conversation; messages after the last answer are left out.
 * @throws {ChatTemplateError} when the template refuses the messages.
 */
export function tokenizeConversation(
  renderer: ChatRenderer,
  messages: readonly ChatMessage[],
): TokenizedSample[] {
  const samples: UnfinishedSample[] = [];
  for (const [i, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const shown = messages.slice(0, i);
    const sample = continueSample(renderer, samples.at(-1), shown) ?? begin(renderer, samples, shown);
    const { content } = message;
    const stopTokenId = stopOf(renderer, sample.shownText, content, [...shown, message]);
    append(sample, renderer.tokenizer.encode(content), 1);
    if (stopTokenId !== undefined) append(sample, [stopTokenId], 1);
    sample.answer = { content, stopTokenId };
  }
  return samples.map(({ tokenIds, lossMask }) => ({
    tokenIds: Uint32Array.from(tokenIds),
    lossMask: Uint8Array.from(lossMask),
  }));
}

/** The last sample, continued with the text after its answer; undefined if there is none or the template changes earlier turns. */
function continueSample(
  renderer: ChatRenderer,
  last: UnfinishedSample | undefined,
  shown: readonly ChatMessage[],
): UnfinishedSample | undefined {
  if (last === undefined) return undefined;
  const extension = renderer.extend(last.shownText, last.answer, shown);
  if (extension.kind === "rewrites") return undefined;
  append(last, extension.addedIds, 0);
  last.shownText = extension.text;
  return last;
}

function begin(
  renderer: ChatRenderer,
  samples: UnfinishedSample[],
  shown: readonly ChatMessage[],
): UnfinishedSample {
  const { tokenIds, text } = renderer.render(shown);
  const sample: UnfinishedSample = {
    tokenIds: [...tokenIds],
    lossMask: tokenIds.map(() => 0),
    shownText: text,
    answer: { content: "", stopTokenId: undefined },
  };
  samples.push(sample);
  return sample;
}

function append(sample: UnfinishedSample, ids: readonly number[], bit: 0 | 1): void {
  for (const id of ids) {
    sample.tokenIds.push(id);
    sample.lossMask.push(bit);
  }
}

/** The stop token that the template puts after an answer, or the tokenizer's own if the template puts none. */
function stopOf(
  renderer: ChatRenderer,
  shownText: string,
  content: string,
  messages: readonly ChatMessage[],
): number | undefined {
  const { tokenizer } = renderer;
  const after = renderer.extend(shownText, { content, stopTokenId: undefined }, messages);
  const next = after.kind === "extends" ? after.addedText : "";
  const isNext = (id: number) => {
    const token = tokenizer.tokenOf(id);
    return token !== undefined && next.startsWith(token);
  };
  return tokenizer.stopTokenIds.find(isNext) ?? tokenizer.eosTokenId;
}
