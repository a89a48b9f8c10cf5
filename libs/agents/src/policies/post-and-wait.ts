/**
 * POST of JSON to a server that may work for as long as the signal lets it: `fetch` gives a server five minutes for its
 * first byte.
 */

import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { readText } from "@hone/core";

export interface PostOptions {
  /** JSON text. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxAnswerBytes: number;
  /** Ends the request; it has no other deadline. */
  readonly signal: AbortSignal;
}

/**
 * @returns the answer, whatever its status.
 * @throws {AnswerTooLongError} when it has more than `maxAnswerBytes`.
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
  return { status: answer.statusCode ?? 0, text: await readText({ body: answer }, maxAnswerBytes) };
}
