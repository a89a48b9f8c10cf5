/**
 * What the messages of a call are to the record so far.
 *
 * All but `first` and `extension` are drift: the call starts a new sample, whose tokens before the answer are computed
 * again and not trained. Much of it says that an agent's history is not what the model wrote.
 */

import { isDeepStrictEqual } from "node:util";
import type { ChatMessage } from "@hone/tokenizer";

export const CallKind = {
  /** Nothing was recorded before. */
  first: "first",
  /** It goes on where a sample ends, verbatim. */
  extension: "extension",
  /** It goes on from an earlier point: another answer to the same, or another way from there. */
  branch: "branch",
  /** Messages that the record has were changed, or an answer stands in it that the model never gave. */
  edited: "edited",
  /** It is shorter than what it goes back to: messages were dropped, or replaced by a summary. */
  compacted: "compacted",
  /** It goes on with the messages, and the chat template shows earlier ones in another way than before. */
  template: "template",
  /** It goes on with the messages, and other tools are shown. */
  tools: "tools",
  /** It has nothing in common with what was recorded, beyond how it begins. */
  unrelated: "unrelated",
} as const;
export type CallKind = (typeof CallKind)[keyof typeof CallKind];

/** Kinds that start a new sample where one could have been gone on with. */
export const DRIFT_KINDS: readonly CallKind[] = Object.values(CallKind).filter(
  (kind) => kind !== CallKind.first && kind !== CallKind.extension,
);

/**
 * The kind of a call that does not go on where a sample ends.
 * @param known the conversation of the record that it has most in common with, its last answer included.
 * @param shared how many messages they have in common from the start.
 */
export function kindOfDrift(
  known: readonly ChatMessage[],
  given: readonly ChatMessage[],
  shared: number,
): CallKind {
  const gone = known.slice(shared);
  const added = given.slice(shared);
  const goneKeys = new Set(gone.map(keyOf));
  const isKept = added.some((message) => goneKeys.has(keyOf(message)));
  // What it would go on from ends with an answer, and a call does not.
  const isShorter = given.length < known.length - 1;
  if (shared === 0 && !isKept) return CallKind.unrelated;
  if (isKept || added.some(isAnswer)) return isShorter ? CallKind.compacted : CallKind.edited;
  // All that stood before the first answer is the same: it goes on from there, or from a later answer.
  if (shared >= known.findIndex(isAnswer)) return CallKind.branch;
  const numAnswersGone = gone.filter(isAnswer).length;
  // One answer less is what another task with the same system message looks like.
  return isShorter && numAnswersGone > 1 ? CallKind.compacted : CallKind.unrelated;
}

/** How many messages two conversations have in common from the start. */
export function sharedMessages(a: readonly ChatMessage[], b: readonly ChatMessage[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && isSameMessage(a[count]!, b[count]!)) count++;
  return count;
}

function isSameMessage(a: ChatMessage, b: ChatMessage): boolean {
  if (a.role !== b.role || a.tool_call_id !== b.tool_call_id) return false;
  if (a.tool_calls === undefined && b.tool_calls === undefined) return a.content === b.content;
  // Around calls, frameworks trim.
  return a.content.trim() === b.content.trim() && isDeepStrictEqual(a.tool_calls, b.tool_calls);
}

function keyOf({ role, content, tool_call_id: id = "" }: ChatMessage): string {
  return `${role}\u0000${id}\u0000${content}`;
}

function isAnswer({ role }: ChatMessage): boolean {
  return role === "assistant";
}
