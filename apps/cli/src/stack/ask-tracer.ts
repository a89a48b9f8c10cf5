/** Asks the API of a stack's tracer. */

import { readText } from "@hone/core";
import { z } from "zod";
import { UsageError } from "../errors.ts";

/** Where the tracer is. */
export interface TracerPlace {
  /** Its address. */
  readonly pageUrl: string;
  /** The token that it requires. */
  readonly token: string;
  readonly signal: AbortSignal;
}

/** What the tracer answered. */
export type TracerAnswer<Value> =
  | { readonly kind: "found"; readonly value: Value }
  /** Nothing is stored under that name, or it is no longer kept; the message is the tracer's. */
  | { readonly kind: "missing"; readonly message: string };

/** Longer than the tracer waits for another service. */
const ANSWER_DEADLINE_MS = 45_000;
/** Largest answer, enough for a rollout with the texts of a thousand turns. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
const MISSING: ReadonlySet<number> = new Set([404, 410]);

const errorSchema = z.object({ error: z.object({ message: z.string() }) });

/** @throws {UsageError} when the tracer does not answer, or answers something else. */
export async function askTracer<Value>(
  { pageUrl, token, signal }: TracerPlace,
  path: string,
  schema: z.ZodType<Value>,
): Promise<TracerAnswer<Value>> {
  let response: Response;
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_DEADLINE_MS)]);
    response = await fetch(`${pageUrl}${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: bounded,
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new UsageError(`the tracer at ${pageUrl} does not answer`, { cause });
  }
  const body = await jsonOf(response);
  if (MISSING.has(response.status)) {
    return {
      kind: "missing",
      message: errorSchema.safeParse(body).data?.error.message ?? "nothing is stored",
    };
  }
  const parsed = schema.safeParse(body);
  if (response.ok && parsed.success) return { kind: "found", value: parsed.data };
  throw new UsageError(
    `the tracer answered ${path} with status ${response.status} and a body that is not the expected JSON`,
  );
}

/**
 * Reads an answer of JSON lines as it comes. The tracer sends them for as long as there are some; it must go on sending.
 * @throws {UsageError} when the tracer does not answer, refuses, or ends in the middle.
 */
export async function* linesFromTracer(
  { pageUrl, token, signal }: TracerPlace,
  path: string,
): AsyncGenerator<string> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), ANSWER_DEADLINE_MS);
  try {
    const response = await fetch(`${pageUrl}${path}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!response.ok || response.body === null) {
      const message =
        errorSchema.safeParse(await jsonOf(response)).data?.error.message ??
        `it has the status ${response.status}`;
      throw new UsageError(`the tracer gave no lines: ${message}`);
    }
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), ANSWER_DEADLINE_MS);
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
    if (rest !== "") throw new UsageError("the tracer ended in the middle of a line; try again");
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`the tracer at ${pageUrl} does not answer`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** The JSON of an answer; undefined where there is none, which the callers report with the status. */
function jsonOf(response: Response): Promise<unknown> {
  return readText(response, MAX_ANSWER_BYTES)
    .then(JSON.parse)
    .catch(() => undefined);
}
