/**
 * POST of JSON to a server that may work for as long as the signal lets it: `fetch` gives a server five minutes for its
 * first byte.
 */

import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { RetryableError } from "@hone/core";

export interface PostOptions {
  /** JSON text. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxAnswerBytes: number;
  /** Ends the request; it has no other deadline. */
  readonly signal: AbortSignal;
}

/** A server answers with more than is read. */
export class AnswerTooLargeError extends RetryableError {
  constructor(url: string, maxBytes: number) {
    super(
      "ANSWER_TOO_LARGE",
      `Cannot read the answer of ${url} as it must have at most ${maxBytes} bytes: current value is more`,
    );
  }
}

/**
 * @returns the answer, whatever its status.
 * @throws what breaks the connection, and the signal's abort.
 */
export async function postAndWait(
  url: string,
  { body, headers, maxAnswerBytes, signal }: PostOptions,
): Promise<{ readonly status: number; readonly text: string }> {
  const send = url.startsWith("https:") ? requestHttps : requestHttp;
  const bytes = Buffer.from(body);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asking: ClientRequest = send(url, {
      method: "POST",
      signal,
      headers: { ...headers, "content-type": "application/json", "content-length": bytes.length },
    });
    asking.once("response", resolve);
    asking.once("error", reject);
    asking.end(bytes);
  });
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxAnswerBytes) throw new AnswerTooLargeError(url, maxAnswerBytes);
    chunks.push(chunk);
  }
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") };
}
