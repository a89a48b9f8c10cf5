/** Makes the reply of a session out of the answer of the model. */

import type { ModelAnswer } from "@hone/agents";
import { FinishReason } from "@hone/rl";
import { type ChatMessage, type ChatRenderer, type ChatTool, StopScanner } from "@hone/tokenizer";
import { checksOf } from "./demands.ts";
import { type ReplyCall, ReplyFinish, type SessionReply, type SessionRequest } from "./session-call.ts";

/** An answer, and how its agent gets it. */
export interface Made {
  readonly answer: ModelAnswer;
  /** The answer in the form in which the agent will send it back. */
  readonly message: ChatMessage;
  readonly reply: SessionReply;
}

/** Makes the reply to a request out of the model's answer, and the message that it was read as. */
export function makeReply(
  { tokenizer }: ChatRenderer,
  request: SessionRequest,
  tools: readonly ChatTool[],
  {
    answer,
    message,
  }: Pick<Made, "answer"> & { readonly message: Pick<ChatMessage, "content" | "tool_calls"> },
): Made {
  const { generation, promptTokenCount, promptIds } = answer;
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: args } }): ReplyCall => {
    return { id, name, argumentsJson: JSON.stringify(args) };
  });
  const isStopped = generation.finishReason === FinishReason.stopText;
  const finish =
    calls.length > 0
      ? ReplyFinish.toolCalls
      : isStopped
        ? ReplyFinish.stopText
        : generation.finishReason === FinishReason.length
          ? ReplyFinish.length
          : ReplyFinish.stop;
  const stopText = isStopped
    ? stopTextIn(tokenizer.decode(generation.tokenIds, { skipSpecialTokens: tools.length === 0 }), request)
    : undefined;
  return {
    answer,
    message: {
      role: "assistant",
      content: message.content,
      ...(message.tool_calls !== undefined && { tool_calls: message.tool_calls }),
    },
    reply: {
      text: message.content,
      calls,
      finish,
      stopText,
      checks: checksOf(request, { text: message.content, calls }),
      usage: {
        inputTokens: promptTokenCount,
        cachedTokens: generation.cachedTokens,
        outputTokens: generation.tokenIds.length,
      },
      tokens: { promptIds, tokenIds: generation.tokenIds, logprobs: generation.logprobs },
    },
  };
}

function stopTextIn(text: string, { stopTexts }: SessionRequest): string | undefined {
  return new StopScanner(stopTexts).push(text).stopText;
}
