/** Finds what is wrong with the name or the configuration of an agent or a tool. */

import { nearest } from "@hone/core";
import type { z } from "zod";

/** One thing that is wrong with a name or a configuration. */
export interface InputProblem {
  /** Path within the value that was checked, such as ["historyTurns"]; empty for the value itself. */
  readonly path: readonly PropertyKey[];
  readonly value: unknown;
  readonly allowed: string;
}

/** Checks a configuration against its schema. */
export function checkConfig<Config>(
  schema: z.ZodType<Config>,
  input: unknown,
): { kind: "valid"; config: Config } | { kind: "invalid"; problems: InputProblem[] } {
  const result = schema.safeParse(input);
  if (result.success) return { kind: "valid", config: result.data };
  return {
    kind: "invalid",
    problems: result.error.issues.flatMap((issue): InputProblem[] => {
      if (issue.code !== "unrecognized_keys") {
        return [{ path: issue.path, value: valueAt(input, issue.path), allowed: issue.message }];
      }
      const known = issue.path.length === 0 ? keysOf(schema) : [];
      return issue.keys.map((key) => {
        const [problem] = unknownName(key, known);
        return {
          path: [...issue.path, key],
          value: valueAt(input, [...issue.path, key]),
          allowed: known.length === 0 ? "no such key" : problem!.allowed,
        };
      });
    }),
  };
}

/** The problem of a name that is not known; an empty list when it is known. */
export function unknownName(name: string, known: readonly string[]): InputProblem[] {
  if (known.includes(name)) return [];
  const meant = nearest(name, known);
  const hint = meant === undefined ? "" : ` (did you mean "${meant}"?)`;
  return [{ path: [], value: name, allowed: `one of ${known.join(", ")}${hint}` }];
}

function keysOf(schema: z.ZodType): string[] {
  const shape: unknown = "shape" in schema ? schema.shape : undefined;
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}
