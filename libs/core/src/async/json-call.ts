/**
 * JSON requests to an outside server, limited in time, size and number, and repeated while that may help.
 *
 * J1: after a failure that may be temporary (no connection, a deadline, 408, 409, 425, 429, 5xx) a request is repeated with
 *     growing pauses; any other failure is thrown at once.
 * J2: at most `concurrency` requests are under way. The others wait, and their deadlines begin when they are sent.
 * J3: redirects are not followed, as key and body may be sent only to the host of the address.
 */

import { RetryableError, TerminalError } from "../errors.ts";
import { deadline } from "./deadline.ts";
import { AnswerTooLongError, readText } from "./read-text.ts";
import { retry } from "./retry.ts";
import { Semaphore } from "./semaphore.ts";

export interface JsonCallOptions {
  /** Time for each request. */
  readonly deadlineMs: number;
  readonly maxAttempts: number;
  readonly concurrency: number;
  readonly maxAnswerBytes: number;
  /** Sent as a bearer token; undefined = none. */
  readonly key?: string | undefined;
  /** Headers of each request beside its own, such as those of a trace. @default none */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** Called before each repetition. */
  readonly onRetry?: () => void;
}

/** Sends a request and reads the answer; when `read` throws a RetryableError, the request is repeated. */
export type JsonCall = <Answer>(
  body: unknown,
  read: (answer: unknown) => Answer,
  signal: AbortSignal,
) => Promise<Answer>;

const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
const SHOWN_CHARACTERS = 200;

/** Makes the call of POST requests to an address. */
export function jsonCall(url: string, options: JsonCallOptions): JsonCall {
  const { deadlineMs, maxAttempts, concurrency, maxAnswerBytes, key, onRetry } = options;
  const own = {
    "content-type": "application/json",
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  const slots = new Semaphore(concurrency);
  return (body, read, signal) =>
    retry(
      async () => {
        await slots.acquire(signal); // J2
        try {
          const headers = { ...options.headers?.(), ...own };
          return await deadline(
            `the answer of ${url}`,
            deadlineMs,
            async (inner) => read(await post(url, { headers, body, maxAnswerBytes }, inner)),
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
        ...(onRetry !== undefined && { onRetry }),
      },
    );
}

interface Post {
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly maxAnswerBytes: number;
}

async function post(
  url: string,
  { headers, body, maxAnswerBytes }: Post,
  signal: AbortSignal,
): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    const redirect = "manual"; // J3
    response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), redirect, signal });
    text = await readText(response, maxAnswerBytes);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof AnswerTooLongError) {
      throw new TerminalError(
        "REMOTE_REFUSED",
        `${url} answers with more than ${maxAnswerBytes} bytes, which is the limit here`,
        { cause },
      );
    }
    throw new RemoteUnavailableError(`${url} cannot be reached`, { cause });
  }
  if (!response.ok) {
    const message = `${url} answered with status ${response.status}: ${text.slice(0, SHOWN_CHARACTERS)}`;
    if (PASSING_STATUS.has(response.status) || response.status >= 500)
      throw new RemoteUnavailableError(message); // J1
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
