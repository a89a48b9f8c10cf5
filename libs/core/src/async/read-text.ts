/**
 * Answers from outside, which may go on for ever: they are read up to a bound, and for as long as the signal of the request
 * lets them. Bytes are counted as they are unpacked: an answer that is small on its way does not get past the bound.
 *
 * Code that runs in production reads answers by this file; scripts/checks/answers.ts finds what does not.
 */

import { TerminalError } from "../errors.ts";

/** An answer is longer than anybody wants it. */
export class AnswerTooLongError extends TerminalError {
  constructor(maxBytes: number) {
    super("ANSWER_TOO_LONG", `The answer has more than ${maxBytes} bytes, and is not read further`);
  }
}

/** An answer of `fetch`; one of node:http is the body itself. */
export interface Answer {
  readonly body: AsyncIterable<Uint8Array> | null;
}

/**
 * Reads a body and stops where it becomes too long.
 * @throws {AnswerTooLongError} beyond `maxBytes`, and what breaks the connection.
 */
export async function readBytes({ body }: Answer, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop cancels the body.
  for await (const part of body ?? []) {
    size += part.length;
    if (size > maxBytes) throw new AnswerTooLongError(maxBytes);
    parts.push(part);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/**
 * Reads a body as UTF-8 and stops where it becomes too long.
 * @throws as {@link readBytes} does.
 */
export async function readText(answer: Answer, maxBytes: number): Promise<string> {
  return new TextDecoder().decode(await readBytes(answer, maxBytes));
}
