/**
 * How the messages of a call relate to the record so far.
 *
 * All kinds but `first` and `extension` are drift: the call starts a new sample, whose tokens before the answer are computed
 * again and not trained. Frequent drift shows that an agent's history differs from what the model wrote.
 */

import { isDeepStrictEqual } from "node:util";
import type { ChatMessage } from "@hone/tokenizer";

export const CallKind = {
  /** Nothing was recorded before. */
  first: "first",
  /** It continues a sample at its end, verbatim. */
  extension: "extension",
  /** It continues from an earlier point: it asks for another answer to the same messages, or goes on differently from there. */
  branch: "branch",
  /** Recorded messages were changed, or it contains an answer that the model never gave. */
  edited: "edited",
  /** It is shorter than the recorded conversation: messages were dropped or replaced by a summary. */
  compacted: "compacted",
  /** It extends the messages, but the chat template shows earlier ones differently than before. */
  template: "template",
  /** It extends the messages, but shows other tools. */
  tools: "tools",
  /** It has nothing in common with the record, except perhaps its first messages. */
  unrelated: "unrelated",
} as const;
export type CallKind = (typeof CallKind)[keyof typeof CallKind];

/** Kinds of calls that start a new sample although there were samples to continue. */
export const DRIFT_KINDS: readonly CallKind[] = Object.values(CallKind).filter(
  (kind) => kind !== CallKind.first && kind !== CallKind.extension,
);

/**
 * The kind of a call that does not continue a sample at its end.
 * @param known the recorded conversation that has most in common with the call, including its last answer.
 * @param shared how many messages the two have in common from the start.
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
  // The recorded conversation ends with an answer, and a call does not.
  const isShorter = given.length < known.length - 1;
  if (shared === 0 && !isKept) return CallKind.unrelated;
  if (isKept || added.some(isAnswer)) return isShorter ? CallKind.compacted : CallKind.edited;
  // Everything before the first answer is the same: the call continues from there or from a later answer.
  if (shared >= known.findIndex(isAnswer)) return CallKind.branch;
  const numAnswersGone = gone.filter(isAnswer).length;
  // Another task with the same system message also has one answer less.
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
  // Frameworks trim the text around calls.
  return a.content.trim() === b.content.trim() && isDeepStrictEqual(a.tool_calls, b.tool_calls);
}

function keyOf({ role, content, tool_call_id: id = "" }: ChatMessage): string {
  return `${role}\u0000${id}\u0000${content}`;
}

function isAnswer({ role }: ChatMessage): boolean {
  return role === "assistant";
}
