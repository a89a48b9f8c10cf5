/** Turns the text that a model wrote into a message with its tool calls. */

import type { ChatTool, ChatToolCall } from "@hone/tokenizer";
import { readAnswer, TOOL_CALL_FORMATS, type ToolCallFormatName } from "../tool-calls/formats.ts";
import type { ToolSchema, WrittenCall } from "../tool-calls/tool-call.ts";

/** An answer that may call tools. */
export interface ToolAnswerMessage {
  /** The text beside the calls; the whole text if there are only unreadable calls. */
  readonly content: string;
  /** The same text with the space around it; absent if there are no calls. */
  readonly fullContent?: string;
  /** Absent = none. */
  readonly tool_calls?: readonly ChatToolCall[];
  /** Parts that began as a call and cannot be read as one. */
  readonly invalidCalls: readonly Extract<WrittenCall, { kind: "invalid" }>[];
}

/**
 * @param turnIndex used in the ids of the calls, where the format has none. They are unique within a conversation; those that a
 * model writes are so within its answer.
 * @param tools some formats need their schemas to tell numbers from strings.
 */
export function readToolAnswer(
  format: ToolCallFormatName,
  written: string,
  turnIndex: number,
  tools: readonly ChatTool[],
): ToolAnswerMessage {
  const { content, fullContent, calls } = readAnswer(format, written, tools.map(schemaOf));
  const toolCalls: ChatToolCall[] = [];
  const invalidCalls: Extract<WrittenCall, { kind: "invalid" }>[] = [];
  for (const call of calls) {
    if (call.kind === "invalid") invalidCalls.push(call);
    else {
      const own = TOOL_CALL_FORMATS[format].hasIds === true ? call.id : undefined;
      // Results are told apart by their ids, so a model that repeats one gets another.
      const isFree = own !== undefined && toolCalls.every(({ id }) => id !== own);
      toolCalls.push({
        id: isFree ? own : callId(turnIndex, toolCalls.length),
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      });
    }
  }
  if (toolCalls.length > 0) return { content, fullContent, tool_calls: toolCalls, invalidCalls };
  return { content: invalidCalls.length > 0 ? written : content, invalidCalls };
}

export function schemaOf({ function: { name, parameters } }: ChatTool): ToolSchema {
  return { name, parameters };
}

const ID_DIGITS = 4;

/** An id of nine letters and digits, as Mistral's templates require; the same at every attempt. */
export function callId(turnIndex: number, callIndex: number): string {
  const digits = (value: number) => value.toString(36).padStart(ID_DIGITS, "0");
  return `c${digits(turnIndex)}${digits(callIndex)}`;
}
