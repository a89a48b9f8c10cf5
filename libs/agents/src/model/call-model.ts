/**
 * One call of the model with its tools: how they are shown, and how the answer is read.
 *
 * Calls are read from the text that the model wrote, in the format of its chat template. Sampling is never constrained to a
 * call, because the logprobs must stay those of the policy.
 */

import { FinishReason, TurnInfo } from "@hone/rl";
import {
  type ChatMessage,
  type ChatRenderer,
  type ChatTool,
  StopScanner,
  type Tokenizer,
} from "@hone/tokenizer";
import type { ReadAnswerMessage } from "../rollout/conversation.ts";
import { formatOfTemplate, type ToolCallFormatName } from "../tool-calls/formats.ts";
import type { CallOptions, ModelAnswer, ModelSession } from "./model-session.ts";
import { readToolAnswer, type ToolAnswerMessage } from "./read-tool-answer.ts";
import { withToolPrompt } from "./tool-prompt.ts";

export interface ModelCall {
  readonly messages: readonly ChatMessage[];
  /** Empty = none. */
  readonly tools: readonly ChatTool[];
  readonly format: ToolCallFormatName;
  readonly options?: Omit<CallOptions, "tools" | "read">;
}

/**
 * Makes the call.
 * @throws what {@link ModelSession.call} throws.
 */
export async function callModel(
  session: ModelSession,
  { messages, tools, format, options = {} }: ModelCall,
): Promise<{ readonly answer: ModelAnswer; readonly message: ToolAnswerMessage }> {
  const { stopTexts = [] } = options;
  if (isPlain(format, tools)) {
    const read = (_written: string, _turn: number, content: string) => ({
      content: beforeStop(content, stopTexts),
    });
    const answer = await session.call(messages, stopTexts.length === 0 ? options : { ...options, read });
    noteControlTokens(answer, session.renderer.tokenizer);
    return { answer, message: { content: answer.turn.responseText, invalidCalls: [] } };
  }
  let message: ToolAnswerMessage = { content: "", invalidCalls: [] };
  const read = (written: string, turnIndex: number): ReadAnswerMessage => {
    message = readToolAnswer(format, beforeStop(written, stopTexts), turnIndex, tools);
    const { content, tool_calls } = message;
    return { content, ...(tool_calls !== undefined && { tool_calls }) };
  };
  const { showsTools } = session.renderer;
  const isDescribed = showsTools || tools.length === 0;
  const answer = await session.call(isDescribed ? messages : withToolPrompt(messages, tools), {
    ...options,
    tools: showsTools ? tools : [],
    read,
  });
  noteInvalidCalls(answer, message);
  return { answer, message };
}

/** Most control tokens that are named in a turn. */
const MAX_NAMED_TOKENS = 8;

/** A model that goes on in another's role samples control tokens of its template, which its decoded text does not show. */
function noteControlTokens({ turn, generation }: ModelAnswer, tokenizer: Tokenizer): void {
  const { tokenIds, finishReason } = generation;
  // The stop token that ended the answer is expected.
  const within = finishReason === FinishReason.stop ? tokenIds.slice(0, -1) : tokenIds;
  const found = within.filter((id) => tokenizer.isSpecial(id)).slice(0, MAX_NAMED_TOKENS);
  if (found.length === 0) return;
  const named = found.map((id) => tokenizer.tokenOf(id)).join(" ");
  turn.info = { ...turn.info, [TurnInfo.controlTokens]: named };
}

/** An answer that was cut off may end within a call; such a call is not counted as invalid. */
function noteInvalidCalls({ turn, generation }: ModelAnswer, { invalidCalls }: ToolAnswerMessage): void {
  if (invalidCalls.length === 0 || generation.finishReason !== FinishReason.stop) return;
  turn.info = { ...turn.info, [TurnInfo.invalidToolCalls]: invalidCalls.length };
}

/** Whether an answer is plain text. Answers in harmony have thoughts and marks even without tools. */
export function isPlain(format: ToolCallFormatName, tools: readonly ChatTool[]): boolean {
  return tools.length === 0 && format !== "gpt_oss";
}

const formats = new WeakMap<ChatRenderer, ToolCallFormatName>();

/** The format of calls that the chat template shows; it is determined once for each renderer. */
export function formatOf(renderer: ChatRenderer): ToolCallFormatName {
  let format = formats.get(renderer);
  if (format === undefined) {
    format = formatOfTemplate(renderer.tokenizer.chatTemplate);
    formats.set(renderer, format);
  }
  return format;
}

/** The text up to the first stop text in it. */
function beforeStop(text: string, stopTexts: readonly string[]): string {
  if (stopTexts.length === 0) return text;
  const { text: before, isStopped } = new StopScanner(stopTexts).push(text);
  return isStopped ? before : text;
}
