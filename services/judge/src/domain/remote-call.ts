/**
 * JSON requests to a server, limited in time and number, and repeated while that may help.
 *
 * M1: after a failure that may be temporary (no connection, a deadline, 408, 409, 425, 429, 5xx) a request is repeated with
 *     growing pauses; any other failure is thrown at once.
 * M2: at most `concurrency` requests are under way. The others wait, and their deadlines begin when they are sent.
 */

import {
  AnswerTooLongError,
  deadline,
  RetryableError,
  readText,
  retry,
  Semaphore,
  TerminalError,
} from "@hone/core";
import { counterOf, Instrument } from "@hone/telemetry";
import type { ConfigOf, JudgeParts } from "./judge-parts.ts";

type RemoteConfig = Pick<ConfigOf<"http">, "deadlineMs" | "maxAttempts" | "concurrency" | "keyVariable">;

/** Sends a request and reads the answer; when `read` throws a RetryableError, the request is repeated. */
export type RemoteCall = <Answer>(
  body: unknown,
  read: (answer: unknown) => Answer,
  signal: AbortSignal,
) => Promise<Answer>;

const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** A grade with its reasons has only kilobytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const SHOWN_CHARACTERS = 200;

const retries = counterOf(Instrument.retries).of({ part: "judge" });

/** @throws {InvalidInputError} when the key is not set, or may not be sent to the address. */
export function remoteCall(url: string, config: RemoteConfig, { keys }: JudgeParts): RemoteCall {
  const { deadlineMs, maxAttempts, concurrency, keyVariable } = config;
  const key = keyVariable === undefined ? undefined : keys.keyFor(keyVariable, url, "judge.keyVariable");
  const headers = {
    "content-type": "application/json",
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  const slots = new Semaphore(concurrency);
  return (body, read, signal) =>
    retry(
      async () => {
        await slots.acquire(signal); // M2
        try {
          return await deadline(
            `the answer of ${url}`,
            deadlineMs,
            async (inner) => read(await post(url, headers, body, inner)),
            { signal },
          );
        } finally {
          slots.release();
        }
      },
      {
        maxAttempts,
        minDelayMs: MIN_DELAY_MS,
        maxDelayMs: MAX_DELAY_MS,
        signal,
        onRetry: () => retries.add(),
      },
    );
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    // Redirects are not followed, as key and body may be sent only to this host (see BoundKeys).
    const redirect = "manual";
    response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), redirect, signal });
    text = await readText(response, MAX_ANSWER_BYTES);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof AnswerTooLongError) {
      throw new TerminalError(
        "REMOTE_REFUSED",
        `${url} answers with more than ${MAX_ANSWER_BYTES} bytes, which is the limit of a judgement`,
        { cause },
      );
    }
    throw new RemoteUnavailableError(`${url} cannot be reached`, { cause });
  }
  if (!response.ok) {
    const message = `${url} answered with status ${response.status}: ${text.slice(0, SHOWN_CHARACTERS)}`;
    if (PASSING_STATUS.has(response.status) || response.status >= 500)
      throw new RemoteUnavailableError(message); // M1
    throw new TerminalError("REMOTE_REFUSED", message);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = `the answer of ${url} is not JSON: ${text.slice(0, SHOWN_CHARACTERS)}`;
    throw new RemoteUnavailableError(message, { cause });
  }
}

/** The server cannot be reached, is busy or gave an unusable answer. */
export class RemoteUnavailableError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("REMOTE_UNAVAILABLE", message, options);
  }
}
