/**
 * Reading answers of other servers, which may never end: they are read up to a size limit, and until the request's signal
 * aborts. The limit counts decompressed bytes, so that a small compressed answer cannot exceed it.
 *
 * All production code reads answers with this file; scripts/checks/answers.ts finds code that does not.
 */

import { TerminalError } from "../errors.ts";

/** An answer is longer than its reader's limit. */
export class AnswerTooLongError extends TerminalError {
  constructor(maxBytes: number) {
    super(
      "ANSWER_TOO_LONG",
      `The answer is longer than the limit of ${maxBytes} bytes; the rest was not read`,
    );
  }
}

/** An answer of `fetch`. For node:http give `{ body: message }`. */
export interface Answer {
  readonly body: AsyncIterable<Uint8Array> | null;
}

/**
 * Reads a body, and stops when it becomes too long.
 * @throws {AnswerTooLongError} beyond `maxBytes`, and the error of a connection that breaks.
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
 * Reads a body as UTF-8, and stops when it becomes too long.
 * @throws the same as {@link readBytes}.
 */
export async function readText(answer: Answer, maxBytes: number): Promise<string> {
  return new TextDecoder().decode(await readBytes(answer, maxBytes));
}
