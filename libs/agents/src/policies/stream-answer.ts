/**
 * Streams an answer while it is generated: first pieces that are certain to be text, then, at the end, the remaining text and
 * the calls.
 *
 * Only the text before the first call is streamed. The pieces together are the message in the record.
 */

import { BoundedQueue } from "@hone/core";
import type { ChatTool, Tokenizer } from "@hone/tokenizer";
import { StreamingDecoder } from "@hone/tokenizer";
import type { ModelAnswer } from "../model/model-session.ts";
import { schemaOf, type ToolAnswerMessage } from "../model/read-tool-answer.ts";
import { TOOL_CALL_FORMATS, type ToolCallFormatName } from "../tool-calls/formats.ts";

interface AnswerResult {
  readonly answer: ModelAnswer;
  readonly message: ToolAnswerMessage;
}

type StreamPiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "end"; readonly text: string; readonly result: AnswerResult };

/** Most pieces that wait for the reader of the stream; a slower reader gets the remaining text with the last piece. */
const MAX_WAITING = 4_096;

/**
 * @param call makes the call and reports tokens as they are generated.
 * @throws what the call throws.
 */
export async function* streamAnswer(
  tokenizer: Tokenizer,
  format: ToolCallFormatName,
  tools: readonly ChatTool[],
  call: (onTokens: (tokenIds: readonly number[]) => void) => Promise<AnswerResult>,
): AsyncGenerator<StreamPiece> {
  const queue = new BoundedQueue<string>(MAX_WAITING);
  const decoder = new StreamingDecoder(tokenizer);
  const isPlain = tools.length === 0 && format !== "gpt_oss";
  const reader = isPlain ? undefined : TOOL_CALL_FORMATS[format].open(tools.map(schemaOf));
  let isText = true;
  const onTokens = (tokenIds: readonly number[]) => {
    for (const id of tokenIds) {
      // In some formats the marks of calls are special tokens. Where there are no calls, special tokens are left out.
      const isSilent = reader === undefined ? tokenizer.isSpecial(id) : tokenizer.stopTokenIds.includes(id);
      if (isSilent || !isText) continue;
      const text = decoder.push(id);
      if (reader === undefined) isText = text === "" || queue.offer(text);
      else {
        for (const piece of reader.push(text)) {
          if (piece.kind === "thought") continue;
          isText = isText && piece.kind === "text" && queue.offer(piece.text);
        }
      }
    }
  };
  const called = call(onTokens).finally(() => queue.close());
  called.catch(() => undefined); // It is awaited below, after the stream.
  let streamed = "";
  for await (const text of queue) {
    streamed += text;
    yield { kind: "text", text };
  }
  const result = await called;
  const whole = result.message.fullContent ?? result.message.content;
  yield { kind: "end", text: whole.startsWith(streamed) ? whole.slice(streamed.length) : "", result };
}
