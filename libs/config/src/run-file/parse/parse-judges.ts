/** Parses a list of judges that is sent without its run file: with an episode, or with a request to score again. */

import { z } from "zod";
import type { ConfigProblem } from "../../errors.ts";
import { problemsOf } from "../../problems.ts";
import { type JudgeConfig, judgesSchema } from "../schema/judges.ts";
import { knownKeys } from "./known-keys.ts";

export type ParsedJudges =
  | { readonly kind: "judges"; readonly judges: readonly JudgeConfig[] }
  | { readonly kind: "problems"; readonly problems: readonly ConfigProblem[] };

const schema = z.object({ judge: judgesSchema.unwrap() });

/**
 * Checks a list of judges and fills in every default.
 * @param key of the list in the run file, with which the keys of its problems begin.
 */
export function parseJudges(value: unknown, key = "judge"): ParsedJudges {
  const input = { judge: value };
  const parsed = schema.safeParse(input);
  if (parsed.success) return { kind: "judges", judges: parsed.data.judge };
  return {
    kind: "problems",
    problems: problemsOf(parsed.error.issues, input, (path) => knownKeys(schema, path, input)).map(
      (problem) => ({
        ...problem,
        key: problem.key.replace(/^judge/, key),
        message: problem.message.replace("`judge", `\`${key}`),
      }),
    ),
  };
}
