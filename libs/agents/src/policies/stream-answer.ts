/**
 * An answer as it is made: text that is certain to be text, then, with the end, the rest of it and its calls.
 *
 * Told are the texts before the first call. What they and the last piece say together is the message of the record.
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

/** Pieces that wait for whoever reads the stream; one that does not read for so long has the rest at the end. */
const MAX_WAITING = 4_096;

/**
 * @param call makes the call; it tells of tokens as they are made.
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
      // Marks of calls are special tokens in some formats; where there are no calls, none is told.
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
  called.catch(() => undefined); // awaited below, after what was told
  let told = "";
  for await (const text of queue) {
    told += text;
    yield { kind: "text", text };
  }
  const result = await called;
  const whole = result.message.fullContent ?? result.message.content;
  yield { kind: "end", text: whole.startsWith(told) ? whole.slice(told.length) : "", result };
}
