/** Turns the issues of the schema library into sentences for people: the key, its value, what is allowed, what was probably meant. */

import { nearest } from "@hone/core";
import type { z } from "zod";
import type { ConfigProblem } from "./errors.ts";

/** Longer values are cut in messages. */
const MAX_SHOWN_CHARACTERS = 120;
/** Most problems that are reported at once; further ones are reported after these are mended. */
export const MAX_PROBLEMS = 50;

/**
 * Translates the issues that a schema found, at most {@link MAX_PROBLEMS} of them.
 * @param known returns the keys that are allowed below a path, for suggestions; undefined if any key is.
 */
export function problemsOf(
  issues: readonly z.core.$ZodIssue[],
  input: unknown,
  known: (path: readonly PropertyKey[]) => readonly string[] | undefined,
): ConfigProblem[] {
  const problems = issues.slice(0, MAX_PROBLEMS).flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.slice(0, MAX_PROBLEMS).map((key) => unknownKey(issue.path, key, input, known));
    const branches = issue.code === "invalid_union" && issue.discriminator === undefined ? issue.errors : [];
    const closest = branches.length > 0 ? closestBranch(branches) : undefined;
    if (closest !== undefined) {
      return problemsOf(
        closest.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })),
        input,
        known,
      );
    }
    const value = valueAt(input, issue.path);
    const key = pathText(issue.path);
    const allowed = allowedBy(issue);
    const message = `${problemMessage(key, value, allowed)}${hintFor(issue, value)}`;
    return [{ key, value, allowed, message }];
  });
  return problems.slice(0, MAX_PROBLEMS);
}

/** The sentence for a value that breaks a rule, such as "`seed` is -1; it must be at least 0". */
export function problemMessage(key: string, value: unknown, allowed: string): string {
  return problemSentence(key, value === undefined ? "is missing" : `is ${show(value)}`, allowed);
}

/** @param found the predicate of the sentence, such as "is nested too deep". */
export function problemSentence(key: string, found: string, allowed: string): string {
  return `${key === "" ? "the file" : `\`${key}\``} ${found}; it must be ${allowed}`;
}

/** A value as JSON, cut if it is long. */
export function show(value: unknown): string {
  if (value === undefined) return "absent";
  return clip(JSON.stringify(value) ?? String(value));
}

function clip(text: string): string {
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}

function unknownKey(
  path: readonly PropertyKey[],
  key: string,
  input: unknown,
  known: (path: readonly PropertyKey[]) => readonly string[] | undefined,
): ConfigProblem {
  const candidates = known(path) ?? [];
  const meant = nearest(key, candidates);
  const full = pathText([...path, clip(key)]);
  const allowed = candidates.length > 0 ? `one of ${candidates.join(", ")}` : "no key here";
  const hint = meant === undefined ? "" : ` (did you mean \`${meant}\`?)`;
  const where = path.length === 0 ? "at the top level" : `below \`${pathText(path)}\``;
  return {
    key: full,
    value: valueAt(input, [...path, key]),
    allowed,
    message: `\`${full}\` is not a known key ${where}${hint}; ${candidates.length > 0 ? `it must be ${allowed}` : "no key is allowed there"}`,
  };
}

/** The branch of a union that fits best: it knows the keys, has the same kind and type, and reports the fewest issues. */
function closestBranch(branches: readonly z.core.$ZodIssue[][]): z.core.$ZodIssue[] | undefined {
  const isOther = (issue: z.core.$ZodIssue) => issue.path.at(-1) === "kind" || issue.path.at(-1) === "source";
  const isStrange = (issue: z.core.$ZodIssue) =>
    issue.code === "unrecognized_keys" && issue.path.length === 0;
  const without = (
    candidates: readonly z.core.$ZodIssue[][],
    isBad: (issue: z.core.$ZodIssue) => boolean,
  ) => {
    const kept = candidates.filter((issues) => !issues.some(isBad));
    return kept.length > 0 ? kept : candidates;
  };
  const isOfAnotherType = ({ code, path }: z.core.$ZodIssue) =>
    path.length === 0 && (code === "invalid_type" || code === "invalid_value");
  const chosen = without(without(without(branches, isOther), isStrange), isOfAnotherType);
  return [...chosen].sort((a, b) => a.length - b.length)[0];
}

/** The allowed word that was probably meant. */
function hintFor(issue: z.core.$ZodIssue, value: unknown): string {
  if (typeof value !== "string") return "";
  const words = issue.code === "invalid_value" ? issue.values : (optionsOf(issue) ?? []);
  const meant = nearest(
    value,
    words.filter((word) => typeof word === "string"),
  );
  return meant === undefined ? "" : ` (did you mean \`${meant}\`?)`;
}

/** The options of a discriminated union exist at run time, but the library's type does not declare them. */
function optionsOf(issue: z.core.$ZodIssue): readonly unknown[] | undefined {
  return issue.code === "invalid_union" && "options" in issue && Array.isArray(issue.options)
    ? issue.options
    : undefined;
}

function allowedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected === "int" ? "a whole number" : `a value of type ${issue.expected}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `${JSON.stringify(issue.values[0])}`
        : `one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "invalid_union": {
      const options = optionsOf(issue);
      return options === undefined
        ? issue.message
        : `one of ${options.map((option) => JSON.stringify(option)).join(", ")}`;
    }
    case "too_small":
      return `${issue.inclusive ? "at least" : "greater than"} ${issue.minimum}${unitOf(issue.origin, Number(issue.minimum))}`;
    case "too_big":
      return `${issue.inclusive ? "at most" : "less than"} ${issue.maximum}${unitOf(issue.origin, Number(issue.maximum))}`;
    default:
      return issue.message;
  }
}

function unitOf(origin: string, count: number): string {
  if (origin === "string") return count === 1 ? " character long" : " characters long";
  if (origin === "array") return count === 1 ? " entry long" : " entries long";
  return "";
}

/** Writes a path as text, such as `judge[0].weight` for ["judge", 0, "weight"]. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`,
    )
    .join("");
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}
