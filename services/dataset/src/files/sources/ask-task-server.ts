/** Asks servers of tasks and of lists of tasks. */

import { AnswerTooLongError, deadline, describeError, RetryableError, readText } from "@hone/core";
import type { z } from "zod";
import { SourceError } from "../../errors.ts";

export interface TaskServer {
  readonly url: string;
  /** The bearer token; undefined = none is sent. */
  readonly key: string | undefined;
  readonly maxAnswerBytes: number;
}

/** The trainer waits no longer than this for a batch; after that it asks again. */
const ANSWER_DEADLINE_MS = 8_000;
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const SHOWN_CHARACTERS = 200;

/** The server cannot be reached, is busy or has an error of its own. */
class TaskServerUnavailableError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("TASK_SERVER_UNAVAILABLE", message, options);
  }
}

/**
 * Asks a task server, with POST where there is a body.
 * @param allowed what its answer must be, for errors.
 * @throws {SourceError} when it refuses or answers something else; {RetryableError} when it cannot be asked now.
 */
export function askTaskServer<Answer>(
  { url, key, maxAnswerBytes }: TaskServer,
  body: unknown,
  schema: z.ZodType<Answer>,
  allowed: string,
): Promise<Answer> {
  return deadline(`the answer of ${url}`, ANSWER_DEADLINE_MS, async (signal) => {
    const headers = {
      "content-type": "application/json",
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
    let response: Response;
    let text: string;
    try {
      const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      // The key is bound to this host (see BoundKeys).
      response = await fetch(url, { ...post, headers, redirect: "manual", signal });
      text = await readText(response, maxAnswerBytes);
    } catch (cause) {
      if (cause instanceof AnswerTooLongError) throw refusal(url, `at most ${maxAnswerBytes} bytes`, "more");
      throw new TaskServerUnavailableError(
        `the task server ${url} cannot be reached (${describeError(cause)}); it is asked again later`,
        { cause },
      );
    }
    const shown = text.slice(0, SHOWN_CHARACTERS);
    if (response.status >= 500 || PASSING_STATUS.has(response.status)) {
      throw new TaskServerUnavailableError(
        `the task server ${url} is not available: it answered with status ${response.status} ${shown}`,
      );
    }
    if (!response.ok) throw refusal(url, "status 2xx", `status ${response.status} ${shown}`);
    const parsed = schema.safeParse(jsonOf(text));
    if (!parsed.success) throw refusal(url, allowed, shown);
    return parsed.data;
  });
}

/** What a server answered that no repetition helps with. */
export function refusal(url: string, allowed: string, found: string): SourceError {
  return new SourceError(`the task server ${url} must answer with ${allowed}, but answered with ${found}`, {
    path: "url",
    allowed,
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
