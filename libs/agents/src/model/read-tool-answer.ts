/** From what a model wrote, where it may call tools, to a message with its calls. */

import type { ChatTool, ChatToolCall } from "@hone/tokenizer";
import { readAnswer, type ToolCallFormatName } from "../tool-calls/formats.ts";
import type { ToolSchema, WrittenCall } from "../tool-calls/tool-call.ts";

/** An answer that may call tools. */
export interface ToolAnswerMessage {
  /** The text beside the calls; all of it where no call can be read. */
  readonly content: string;
  /** The same with the space around it; absent = there is none. */
  readonly fullContent?: string;
  /** Absent = none. */
  readonly tool_calls?: readonly ChatToolCall[];
  /** What began as a call and is none. */
  readonly invalidCalls: readonly Extract<WrittenCall, { kind: "invalid" }>[];
}

/**
 * @param turnIndex names the calls, which must have names of their own within a conversation.
 * @param tools by their schemas some formats tell numbers from texts.
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
      toolCalls.push({
        id: callId(turnIndex, toolCalls.length),
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

/** Nine letters and digits, which Mistral's templates insist on; the same at every attempt. */
export function callId(turnIndex: number, callIndex: number): string {
  const digits = (value: number) => value.toString(36).padStart(ID_DIGITS, "0");
  return `c${digits(turnIndex)}${digits(callIndex)}`;
}
