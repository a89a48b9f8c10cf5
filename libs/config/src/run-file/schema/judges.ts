/**
 * The judges of a run file. docs/judges.md shows the same for people.
 *
 * Adding one: a strict object with a `kind` of its own here, and the function that scores in the judge service; if it
 * compares with the row's ground truth, its kind stands in GROUND_TRUTH_JUDGES, so that a run without one is refused.
 */

import { Gsm8kMethod } from "@hone/rl";
import { z } from "zod";
import { isHttpUrl } from "./http-url.ts";

const MAX_JUDGE_NAME_CHARACTERS = 128;
const MAX_PATTERN_CHARACTERS = 4_096;
const MAX_DATA_SOURCES = 100;
const MAX_PATH_CHARACTERS = 1_024;

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

const deadlineMs = z.number().int().min(10).max(3_600_000);

const url = z.string().refine(isHttpUrl, "an address that begins with http:// or https://");

/** Of judges that ask another program. */
const remote = {
  /** For one try. */
  deadlineMs: deadlineMs.default(60_000),
  /** Tries in all, with growing pauses; then the judge has failed. */
  maxAttempts: z.number().int().min(1).max(20).default(5),
  /** Requests under way at once, of each judge process. */
  concurrency: z.number().int().min(1).max(1_024).default(16),
  /** Name of the environment variable that holds the key, sent as bearer token. Judges read no other variables. */
  keyVariable: z
    .string()
    .regex(
      /^HONE_JUDGE_KEY(_[A-Z0-9_]{1,64})?$/,
      "HONE_JUDGE_KEY, or a name that begins with HONE_JUDGE_KEY_",
    )
    .optional(),
};

/** Of judges that ask a model. */
const modelCall = {
  /** Of an OpenAI-compatible API, up to and with `/v1`. */
  baseUrl: url,
  model: z.string().min(1).max(MAX_JUDGE_NAME_CHARACTERS),
  /** What is good and what is not, in the user's words. */
  rubric: z.string().min(1).max(65_536),
  temperature: z.number().min(0).max(2).default(0),
  maxTokens: z.number().int().min(1).max(65_536).default(1_024),
  /** Of a million tokens, in whatever money; the cost of the grades is told in it. */
  price: z
    .strictObject({ input: z.number().min(0).default(0), output: z.number().min(0).default(0) })
    .prefault({}),
};

/** What the judge `degenerate` can look for. */
export const DEGENERATE_CHECKS = ["loops", "control_tokens", "script", "tool_calls"] as const;

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
    /** As verl has them, strict: after `####`; flexible: the last number as it stands. last_number reads more kindly. */
    method: z.enum(Gsm8kMethod).default(Gsm8kMethod.strict),
  }),
  /** 1 where the last boxed answer equals the ground truth once both are normalised. */
  z.strictObject({ kind: z.literal("math"), ...common }),
  /** 1 where the last `Answer: …` (or, without one, the last box) is the ground truth, else -1. */
  z.strictObject({ kind: z.literal("math_dapo"), ...common }),
  /** 1 where the answer is JSON that fits the schema. */
  z.strictObject({
    kind: z.literal("json_schema"),
    ...common,
    /** JSON schema, draft 2020-12. */
    schema: z.record(z.string(), z.unknown()),
  }),
  /** -1 where the episode went off the rails in a way that is looked for, else 0. */
  z.strictObject({
    kind: z.literal("degenerate"),
    ...common,
    checks: z.array(z.enum(DEGENERATE_CHECKS)).min(1).default(["loops", "control_tokens"]),
    /** Unicode names of the scripts that answers are written in; for the check `script`. */
    scripts: z
      .array(z.string().refine(isScript, "a script of Unicode, such as Latin"))
      .min(1)
      .default(["Latin"]),
  }),
  /** Whether the answer's Python passes the row's unit tests. */
  z.strictObject({
    kind: z.literal("python"),
    ...common,
    /** all: 1 where every test passes, else 0; share: the share of the tests that pass. */
    score: z.enum(["all", "share"]).default("all"),
    /** For the code and each test. */
    timeMs: deadlineMs.default(10_000),
  }),
  /** What a function of the user returns. */
  z.strictObject({
    kind: z.literal("module"),
    ...common,
    /** TypeScript or JavaScript file below the project folder that exports `computeScore`. */
    path: z.string().min(1).max(MAX_PATH_CHARACTERS),
    deadlineMs: deadlineMs.default(30_000),
  }),
  /** What a server of the user answers. */
  z.strictObject({ kind: z.literal("http"), ...common, ...remote, url }),
  /** How a model grades the answer, in [0, 1]. */
  z.strictObject({
    kind: z.literal("llm"),
    ...common,
    ...remote,
    ...modelCall,
    /** The grades that the model gives; they are scaled to [0, 1]. */
    scale: z
      .strictObject({ min: z.number(), max: z.number() })
      .refine(({ min, max }) => min < max, "a min below its max")
      .default({ min: 0, max: 10 }),
  }),
  /** What a trained classifier says of the conversation. */
  z.strictObject({
    kind: z.literal("reward_model"),
    ...common,
    /** Folder below the project folder: model.onnx (or onnx/model.onnx) and the tokenizer's files. */
    path: z.string().min(1).max(MAX_PATH_CHARACTERS),
    /** Which of the model's outputs is the value. */
    label: z.number().int().min(0).default(0),
    /** How an output becomes a value: as it is, or by the logistic function. */
    squash: z.enum(["none", "sigmoid"]).default("none"),
    /** A longer conversation keeps its end. */
    maxTokens: z.number().int().min(1).max(1_048_576).default(4_096),
  }),
  /** How the answers of a group compare, in [0, 1]: one model call ranks all of them, once they are there. */
  z.strictObject({ kind: z.literal("group"), ...common, ...remote, ...modelCall }),
]);

/** The list of judges as a run file holds it. */
export const judgesSchema = z
  .array(judgeSchema)
  .min(1)
  .max(32)
  .default([{ kind: "environment", weight: 1 }]);

export type JudgeConfig = z.output<typeof judgeSchema>;
export type JudgeKind = JudgeConfig["kind"];
/** A judge that compares the rollouts of a group; all others judge episode by episode. */
export type GroupJudgeConfig = Extract<JudgeConfig, { kind: "group" }>;
export type EpisodeJudgeConfig = Exclude<JudgeConfig, GroupJudgeConfig>;

/** Judges that compare with the row's `reward_model.ground_truth`. */
export const GROUND_TRUTH_JUDGES: ReadonlySet<JudgeKind> = new Set([
  "exact",
  "gsm8k",
  "math",
  "math_dapo",
  "python",
]);

function isPattern(text: string, withFlags = ""): boolean {
  try {
    new RegExp(text, withFlags);
    return true;
  } catch {
    return false;
  }
}

function isScript(name: string): boolean {
  return /^\w+$/.test(name) && isPattern(`\\p{Script=${name}}`, "u");
}
