/**
 * The judges of a run file. docs/judges.md shows the same for people.
 *
 * Adding one: a strict object with a `kind` of its own here, and the function that scores in the judge service; if it
 * compares with the row's ground truth, its kind stands in GROUND_TRUTH_JUDGES, so that a run without one is refused.
 */

import { z } from "zod";

const MAX_JUDGE_NAME_CHARACTERS = 128;
const MAX_PATTERN_CHARACTERS = 4_096;
const MAX_DATA_SOURCES = 100;

/** What every judge has. */
const common = {
  /** Tells judges of one kind apart in scores and figures. Default: the kind. */
  name: z.string().min(1).max(MAX_JUDGE_NAME_CHARACTERS).optional(),
  /** The reward is the sum of weight x value. */
  weight: z.number().default(1),
  /** Judges only rows whose `data_source` is one of these; absent = every episode. */
  dataSources: z.array(z.string().min(1)).min(1).max(MAX_DATA_SOURCES).optional(),
};

const pattern = z
  .string()
  .min(1)
  .max(MAX_PATTERN_CHARACTERS)
  .refine((text) => isPattern(text), "a regular expression of JavaScript");

/** Of a regular expression; `g` and `y` would keep a position from one text to the next. */
const flags = z
  .string()
  .regex(/^[imsu]*$/, "flags out of i, m, s and u")
  .refine((text) => isPattern("", text), "flags that are not repeated")
  .default("");

/** One judge. */
export const judgeSchema = z.discriminatedUnion("kind", [
  /** The return of the environment. */
  z.strictObject({ kind: z.literal("environment"), ...common }),
  /** Share of turns whose answer had the asked-for form. */
  z.strictObject({ kind: z.literal("format"), ...common }),
  /** 1 where the answer is the ground truth, letter by letter but for spaces around it. */
  z.strictObject({
    kind: z.literal("exact"),
    ...common,
    /** What the last match of this holds (its first group, where it has one) is the answer; absent = the whole text. */
    pattern: pattern.optional(),
    flags,
    ignoreCase: z.boolean().default(false),
  }),
  /** 1 where the text holds what the pattern describes. */
  z.strictObject({ kind: z.literal("regex"), ...common, pattern, flags }),
  /** 1 where the number of the answer is the ground truth. */
  z.strictObject({
    kind: z.literal("gsm8k"),
    ...common,
    /** strict: after `####` near the end; flexible: the last number. */
    method: z.enum(["strict", "flexible"]).default("strict"),
  }),
  /** 1 where the last boxed answer equals the ground truth once both are normalised. */
  z.strictObject({ kind: z.literal("math"), ...common }),
]);

/** The list of judges as a run file holds it. */
export const judgesSchema = z
  .array(judgeSchema)
  .min(1)
  .max(32)
  .default([{ kind: "environment", weight: 1 }]);

export type JudgeConfig = z.output<typeof judgeSchema>;
export type JudgeKind = JudgeConfig["kind"];

/** Judges that compare with the row's `reward_model.ground_truth`. */
export const GROUND_TRUTH_JUDGES: ReadonlySet<JudgeKind> = new Set(["exact", "gsm8k", "math"]);

function isPattern(text: string, withFlags = ""): boolean {
  try {
    new RegExp(text, withFlags);
    return true;
  } catch {
    return false;
  }
}
