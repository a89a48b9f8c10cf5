/**
 * A source whose tasks come from a server:
 *
 *     GET  <url>                             -> { "size": 1000 }
 *     POST <url>  { "elements": [7, 3] }     -> { "rows": [{…}, {…}] }
 *
 * Rows are numbered from 0, and a number must always give the same row: a run that is resumed asks for the same rows again.
 */

import { AnswerTooLongError, deadline, describeError, RetryableError, readText } from "@hone/core";
import { z } from "zod";
import type { Task, TaskSource } from "../../domain/task.ts";
import { SourceError } from "../../errors.ts";
import { MAX_BATCH_BYTES } from "../jsonl-file.ts";

export interface HttpSourceOptions {
  readonly url: string;
  /** The bearer token; undefined = none is sent. */
  readonly key: string | undefined;
}

/** The trainer waits no longer than this for a batch; after that it asks again. */
const ANSWER_DEADLINE_MS = 8_000;
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const SHOWN_CHARACTERS = 200;

const sizeSchema = z.looseObject({ size: z.int().min(1).max(Number.MAX_SAFE_INTEGER) });
const rowsSchema = z.looseObject({ rows: z.array(z.record(z.string(), z.unknown())) });

/** The server cannot be reached, is busy or has an error of its own. */
class TaskServerUnavailableError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("TASK_SERVER_UNAVAILABLE", message, options);
  }
}

/** @throws {SourceError | RetryableError} when the server does not give its size. */
export async function httpSource(options: HttpSourceOptions): Promise<TaskSource> {
  const { url } = options;
  const { size } = await askTaskServer(options, undefined, sizeSchema, '{ "size": number of rows }');
  const name = new URL(url).host;
  return {
    size,
    async read(elements) {
      const { rows } = await askTaskServer(
        options,
        { elements },
        rowsSchema,
        '{ "rows": [one object a row] }',
      );
      if (rows.length !== elements.length) {
        throw refusal(url, `the ${elements.length} rows that it was asked for`, `${rows.length} rows`);
      }
      return rows.map(
        (row, index): Task => ({
          kind: "row",
          id: `${name}:${elements[index]}`,
          rowJson: JSON.stringify(row),
        }),
      );
    },
  };
}

/**
 * Asks a task server, with POST where there is a body.
 * @param allowed what its answer must be, for errors.
 * @throws {SourceError} when it refuses or answers something else; {RetryableError} when it cannot be asked now.
 */
export function askTaskServer<Answer>(
  { url, key }: HttpSourceOptions,
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
      text = await readText(response, MAX_BATCH_BYTES);
    } catch (cause) {
      if (cause instanceof AnswerTooLongError) throw refusal(url, `at most ${MAX_BATCH_BYTES} bytes`, "more");
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

function refusal(url: string, allowed: string, found: string): SourceError {
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
