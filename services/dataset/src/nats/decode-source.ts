/** A split's part of the run file, from JSON to the domain's words. */

import { show } from "@hone/config";
import { parseJson } from "@hone/core";
import { z } from "zod";
import type { SourceSpec } from "../domain/source-spec.ts";
import { SourceError } from "../errors.ts";

const seed = z.int().min(0);

const sourceSchema: z.ZodType<SourceSpec> = z.discriminatedUnion("source", [
  z.object({
    source: z.literal("environment"),
    environment: z.string().min(1),
    config: z.record(z.string(), z.unknown()).default({}),
    seeds: z.object({ from: seed, to: seed }),
  }),
  z.object({ source: z.literal("jsonl"), path: z.string().min(1) }),
]);

/** @throws {SourceError} naming the key below the source that is wrong. */
export function decodeSource(value: unknown): SourceSpec {
  const parsed = sourceSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join(".") ?? "";
  throw new SourceError(
    `Cannot read a dataset source as ${path === "" ? "it" : `"${path}"`} breaks its schema (${issue?.message}): current value is ${show(value)}`,
    { path, allowed: issue?.message ?? "a source" },
    { cause: parsed.error },
  );
}

/** @throws {SourceError} when the text is no JSON, or no source. */
export function decodeSourceJson(json: string): SourceSpec {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw new SourceError(
      `Cannot read a dataset source as it must be JSON: current value is ${json.slice(0, 200)}`,
      { path: "", allowed: "a JSON object" },
      { cause: error },
    );
  }
  return decodeSource(value);
}
