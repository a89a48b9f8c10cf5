/**
 * A turn as a chat: the messages that the model was shown since the turn before, and its answer with thoughts and tool calls.
 *
 * The calls are read by the format that the run's chat template shows, as agent-rollout reads them, or without a template by the
 * format whose marks are in the answer.
 */

import { formatOfTemplate, TOOL_CALL_FORMATS, type ToolCallFormat } from "@hone/agents/tool-calls";
import type { Turn } from "@hone/proto-gen/rollout";
import { type ChatRole, splitMessages, withoutClosings } from "./split-messages.ts";

/** A part of a message, as one card or paragraph. */
export type ChatPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thought"; readonly text: string }
  /** `arguments` is JSON. */
  | { readonly kind: "call"; readonly name: string; readonly arguments: string }
  /** Began as a call and cannot be read as one. */
  | { readonly kind: "invalid_call"; readonly text: string; readonly reason: string }
  /** What a tool returned. */
  | { readonly kind: "result"; readonly text: string }
  /** What an environment shows. */
  | { readonly kind: "observation"; readonly text: string };

export interface ChatMessage {
  readonly role: ChatRole;
  readonly parts: readonly ChatPart[];
}

/** How an episode's chat is read. */
export interface ChatSource {
  /** The chat template of the run's tokenizer; undefined = it is not known. */
  readonly chatTemplate: string | undefined;
  /** Whether an environment speaks for the user. */
  readonly hasEnvironment: boolean;
}

/** Of one message. An answer that repeats a mark thousands of times is shown up to here; its tokens show all of it. */
const MAX_PARTS = 300;
type AnswerReader = ReturnType<ToolCallFormat["open"]>;
type AnswerPiece = ReturnType<AnswerReader["push"]>[number];

const PIECE_CHARACTERS = 2_048;

const THOUGHTS = /<(think|thinking|reasoning|thought)>([\s\S]*?)(?:<\/\1>|$)/g;
/** A template may have opened the thoughts already. */
const UNOPENED_THOUGHT = /^([\s\S]*?)<\/(?:think|thinking|reasoning|thought)>/;
const RESULTS = /<tool_response>\n?([\s\S]*?)\n?(?:<\/tool_response>|$)/g;

/** The messages of a turn in order; the last one is the answer. */
export function chatOf({ promptText, responseText }: Turn, source: ChatSource): readonly ChatMessage[] {
  const prompts = splitMessages(promptText);
  const messages = prompts.map(({ role, text }) => ({ role, parts: partsShown(role, text, source) }));
  // The model continues what the template began, such as an opened thought.
  const begun = prompts.at(-1);
  const isBegun = begun?.role === "assistant" && !begun.isClosed;
  const answer = isBegun ? `${begun.text}\n${responseText}` : responseText;
  if (isBegun) messages.pop();
  return [...messages, { role: "assistant", parts: partsWritten(answer, source) }];
}

/** What a model was shown: results of tools stand in the message of a tool, or between marks in one of the user. */
function partsShown(role: ChatRole, text: string, source: ChatSource): ChatPart[] {
  if (role === "assistant") return partsWritten(text, source);
  if (role === "tool") return [{ kind: "result", text: text.replace(/<\/?tool_response>\n?/g, "").trim() }];
  const plain = (piece: string): ChatPart[] =>
    piece.trim() === ""
      ? []
      : [{ kind: role === "user" && source.hasEnvironment ? "observation" : "text", text: piece }];
  return split(text, RESULTS, plain, ([, result = ""]) => ({ kind: "result", text: result }));
}

function partsWritten(answer: string, { chatTemplate }: ChatSource): ChatPart[] {
  const format = formatOfTemplate(chatTemplate ?? answer);
  const reader = TOOL_CALL_FORMATS[format].open([]);
  const parts: ChatPart[] = [];
  let text = "";
  const flush = () => {
    parts.push(...thoughtsAndText(withoutClosings(text)));
    text = "";
  };
  for (const piece of piecesOf(reader, answer)) {
    if (parts.length >= MAX_PARTS) break;
    if (piece.kind === "text") {
      text += piece.text;
      continue;
    }
    flush();
    if (piece.kind === "thought") parts.push({ kind: "thought", text: piece.text });
    else if (piece.kind === "invalid") parts.push({ ...piece, kind: "invalid_call" });
    else parts.push({ kind: "call", name: piece.name, arguments: JSON.stringify(piece.arguments, null, 2) });
  }
  flush();
  return joined(parts);
}

/** Reads in short pieces, as a reader's time may grow with the square of a piece that is full of marks. */
function* piecesOf(reader: AnswerReader, answer: string): Iterable<AnswerPiece> {
  for (let from = 0; from < answer.length; from += PIECE_CHARACTERS)
    yield* reader.push(answer.slice(from, from + PIECE_CHARACTERS));
  yield* reader.end();
}

function thoughtsAndText(text: string): ChatPart[] {
  const plain = (piece: string): ChatPart[] => (piece.trim() === "" ? [] : [{ kind: "text", text: piece }]);
  const [whole = "", begun = ""] = UNOPENED_THOUGHT.exec(text) ?? [];
  const isBegun = whole !== "" && !/<(?:think|thinking|reasoning|thought)>/.test(whole);
  const rest = isBegun ? text.slice(whole.length) : text;
  const parts = split(rest, THOUGHTS, plain, ([, , thought = ""]) => ({
    kind: "thought",
    text: thought.trim(),
  }));
  return isBegun ? [{ kind: "thought", text: begun.trim() }, ...parts] : parts;
}

/** Cuts a text at the matches of a pattern. */
function split(
  text: string,
  pattern: RegExp,
  plain: (piece: string) => ChatPart[],
  marked: (match: RegExpMatchArray) => ChatPart,
): ChatPart[] {
  const parts: ChatPart[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (parts.length >= MAX_PARTS) break;
    parts.push(...plain(text.slice(from, match.index)), marked(match));
    from = match.index + match[0].length;
  }
  return [...parts, ...plain(text.slice(from))];
}

/** Thoughts that came in pieces are one, and empty ones are none. */
function joined(parts: readonly ChatPart[]): ChatPart[] {
  const result: ChatPart[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (part.kind === "thought" && part.text.trim() === "") continue;
    if (part.kind === "thought" && last?.kind === "thought")
      result[result.length - 1] = { kind: "thought", text: last.text + part.text };
    else result.push(part);
  }
  return result;
}
