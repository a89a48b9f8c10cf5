/** Sends a request to a system for experiments, and tells what may be tried again. */

import { describeError, readText } from "@hone/core";
import { SinkRefusedError, SinkUnavailableError } from "../errors.ts";

/** A server that takes longer counts as away. */
const REQUEST_TIMEOUT_MS = 10_000;
/** MLflow answers with a run's parameters and newest metrics, of which each is limited. */
const MAX_ANSWER_BYTES = 16 * 1024 ** 2;
/** Of an answer's text, for an error. */
const MAX_REASON = 300;
/** Answers that mean "not so": the same request is refused again. Wrong credentials are not among them, as an operator corrects them. */
const NEVER: ReadonlySet<number> = new Set([400, 413, 422]);

export interface SinkRequest {
  /** The system and its address for errors. */
  readonly sink: string;
  readonly url: string;
  readonly method: "GET" | "POST" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: RequestInit["body"];
  /** For a body that takes longer. @default 10_000 */
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

/**
 * @returns the text of the answer.
 * @throws {SinkRefusedError} for an answer that would be the same the next time.
 * @throws {SinkUnavailableError} for any other failure.
 */
export async function sinkRequest(request: SinkRequest): Promise<string> {
  const { sink, url, method, headers, body, timeoutMs = REQUEST_TIMEOUT_MS, signal } = request;
  let status: number;
  let text: string;
  try {
    const answer = await fetch(url, {
      method,
      headers,
      ...(body !== undefined && { body, duplex: "half" }),
      // A redirect would take the credentials to another address.
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    status = answer.status;
    text = await readText(answer, MAX_ANSWER_BYTES);
    if (answer.ok) return text;
  } catch (cause) {
    throw new SinkUnavailableError(sink, describeError(cause), { cause });
  }
  const reason = `it answered ${status} ${text.replaceAll(/\s+/g, " ").slice(0, MAX_REASON)}`.trim();
  throw NEVER.has(status) ? new SinkRefusedError(sink, reason) : new SinkUnavailableError(sink, reason);
}
