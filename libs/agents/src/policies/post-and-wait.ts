/**
 * POSTs JSON to a server that may work for as long as the signal allows. `fetch` is not used because it gives up when the
 * first byte does not arrive within five minutes.
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
 * @returns the answer, whatever its status is.
 * @throws {AnswerTooLongError} when the answer has more than `maxAnswerBytes`.
 * @throws the error that broke the connection, or the abort of the signal.
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
