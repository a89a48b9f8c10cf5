/**
 * JSON requests to a program outside: bounded in time and number, tried again while that may help.
 *
 * M1: what may pass (no connection, a deadline, 408, 409, 425, 429, 5xx) is tried again with growing pauses; what may not
 *     is told at once.
 * M2: at most `concurrency` requests are under way; the others wait their turn, and their deadline begins with it.
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

/** What a judge asks, and what it makes of the answer; it may refuse an answer with a RetryableError. */
export type RemoteCall = <Answer>(
  body: unknown,
  read: (answer: unknown) => Answer,
  signal: AbortSignal,
) => Promise<Answer>;

const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** A grade with its reasons has kilobytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const SHOWN_CHARACTERS = 200;

const retries = counterOf(Instrument.retries).of({ part: "judge" });

/** @throws {InvalidInputError} when the key's variable is not set, or not bound to the address. */
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
    // The key is bound to this host (see BoundKeys), and the body is for it alone.
    const redirect = "manual";
    response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), redirect, signal });
    text = await readText(response, MAX_ANSWER_BYTES);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof AnswerTooLongError) {
      throw new TerminalError(
        "REMOTE_REFUSED",
        `${url} answers with more than ${MAX_ANSWER_BYTES} bytes, where a judgement has some thousand`,
        { cause },
      );
    }
    throw new RemoteUnavailableError(`Cannot reach ${url}`, { cause });
  }
  if (!response.ok) {
    const message = `Cannot use the answer of ${url} as its status must be 2xx: current value is ${response.status} ${text.slice(0, SHOWN_CHARACTERS)}`;
    if (PASSING_STATUS.has(response.status) || response.status >= 500)
      throw new RemoteUnavailableError(message); // M1
    throw new TerminalError("REMOTE_REFUSED", message);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = `Cannot use the answer of ${url} as it must be JSON: current value is ${text.slice(0, SHOWN_CHARACTERS)}`;
    throw new RemoteUnavailableError(message, { cause });
  }
}

/** The program outside is away, busy or confused. */
export class RemoteUnavailableError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("REMOTE_UNAVAILABLE", message, options);
  }
}
