/** The text of an answer from outside, which may go on for ever. */

import { TerminalError } from "../errors.ts";

/** An answer is longer than anybody wants it. */
export class AnswerTooLongError extends TerminalError {
  constructor(maxBytes: number) {
    super("ANSWER_TOO_LONG", `The answer has more than ${maxBytes} bytes, and is not read further`);
  }
}

/**
 * Reads a body as UTF-8 and stops where it becomes too long.
 * @throws {AnswerTooLongError} beyond `maxBytes`, and what breaks the connection.
 */
export async function readText(
  { body }: { readonly body: ReadableStream<Uint8Array> | null },
  maxBytes: number,
): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new AnswerTooLongError(maxBytes);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
