/** The run's judges, from JSON to the domain's words. */

import type { JudgeConfig } from "@hone/config";
import { InvalidInputError, nearest, parseJson } from "@hone/core";
import { z } from "zod";
import { JUDGES, type JudgeKind } from "../domain/registry.ts";

/** What is wrong with one key of the judges. */
export interface JudgeProblem {
  /** Path below the list, such as `[0].kind`; empty for the list itself. */
  readonly path: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly message: string;
}

export type DecodedJudges =
  | { readonly kind: "judges"; readonly judges: readonly JudgeConfig[] }
  | { readonly kind: "problems"; readonly problems: readonly JudgeProblem[] };

const KINDS = Object.keys(JUDGES) as JudgeKind[];

const judgesSchema = z
  .array(z.object({ kind: z.enum(KINDS), weight: z.number().default(1) }), { error: "a list of judges" })
  .min(1, "at least one judge");

/** Checks a list of judges as a run file holds it. */
export function decodeJudges(value: unknown): DecodedJudges {
  const parsed = judgesSchema.safeParse(value);
  if (parsed.success) return { kind: "judges", judges: parsed.data };
  return {
    kind: "problems",
    problems: parsed.error.issues.map((issue) => {
      const found = issue.path.reduce<unknown>(
        (current, key) =>
          typeof current === "object" && current !== null ? Reflect.get(current, key) : undefined,
        value,
      );
      const isKind = issue.path.at(-1) === "kind";
      const allowed = isKind ? KINDS.join(", ") : issue.message;
      const meant = isKind && typeof found === "string" ? nearest(found, KINDS) : undefined;
      const path = pathText(issue.path);
      return {
        path,
        value: found,
        allowed,
        message: `Cannot judge as ${path === "" ? "the run's judges" : `"judge${path}"`} must be ${allowed}: current value is ${JSON.stringify(found)}${meant === undefined ? "" : ` (did you mean "${meant}"?)`}`,
      };
    }),
  };
}

/** The judges that an episode carries. @throws {InvalidInputError} when the text is no list of judges. */
export function decodeJudgesJson(json: string): readonly JudgeConfig[] {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refusal(`Cannot judge as the judges must be JSON: current value is ${json.slice(0, 200)}`, error);
  }
  const decoded = decodeJudges(value);
  if (decoded.kind === "judges") return decoded.judges;
  throw refusal(decoded.problems.map((problem) => problem.message).join("; "));
}

function refusal(message: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(message, { path: "judge", allowed: "a list of judges" }, { cause });
}

/** `[0].kind` for [0, "kind"]. */
function pathText(path: readonly PropertyKey[]): string {
  return path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
}
