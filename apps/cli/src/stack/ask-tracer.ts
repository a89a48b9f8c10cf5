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
  const body: unknown = await readText(response, MAX_ANSWER_BYTES)
    .then(JSON.parse)
    .catch(() => undefined);
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
