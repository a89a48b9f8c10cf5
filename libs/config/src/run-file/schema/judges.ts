/**
 * The judges of a run file. docs/judges.md describes the same for users.
 *
 * To add a judge: add a strict object with its own `kind` here, and the function that scores in the judge service. If it
 * compares with the row's ground truth, add its kind to GROUND_TRUTH_JUDGES, so that a run without ground truth is refused.
 */

import { Gsm8kMethod } from "@hone/rl";
import { z } from "zod";
import { isHttpUrl } from "./http-url.ts";
import { ROLE_NAME } from "./policies.ts";

const MAX_JUDGE_NAME_CHARACTERS = 128;
const MAX_PATTERN_CHARACTERS = 4_096;
const MAX_DATA_SOURCES = 100;
const MAX_JUDGED_ROLES = 32;
const MAX_PATH_CHARACTERS = 1_024;

/** Keys of every judge. */
const common = {
  /** Distinguishes judges of one kind in scores and figures. Default: the kind. */
  name: z.string().min(1).max(MAX_JUDGE_NAME_CHARACTERS).optional(),
  /** The reward is the sum of weight x value. */
  weight: z.number().default(1),
  /** The judge scores only rows whose `data_source` is one of these; absent = every episode. */
  dataSources: z.array(z.string().min(1)).min(1).max(MAX_DATA_SOURCES).optional(),
  /** The roles whose reward the score is part of; absent = all roles, and the rollout as a whole. */
  roles: z.array(z.string().regex(ROLE_NAME, "the name of a role")).min(1).max(MAX_JUDGED_ROLES).optional(),
};

const pattern = z
  .string()
  .min(1)
  .max(MAX_PATTERN_CHARACTERS)
  .refine((text) => isPattern(text), "a regular expression of JavaScript");

/** Flags of a regular expression, without `g` and `y`, which would keep a position from one text to the next. */
const flags = z
  .string()
  .regex(/^[imsu]*$/, "flags out of i, m, s and u")
  .refine((text) => isPattern("", text), "flags that are not repeated")
  .default("");

const deadlineMs = z.number().int().min(10).max(3_600_000);

const url = z.string().refine(isHttpUrl, "an address that begins with http:// or https://");

/** Keys of judges that send requests to another server. */
const remote = {
  /** Time limit of one attempt. */
  deadlineMs: deadlineMs.default(60_000),
  /** Largest number of attempts, with growing pauses between them; after the last one the judge has failed. */
  maxAttempts: z.number().int().min(1).max(20).default(5),
  /** Requests that each judge process sends at the same time. */
  concurrency: z.number().int().min(1).max(1_024).default(16),
  /** The environment variable that holds the key, which is sent as a bearer token. Judges read no other variables. */
  keyVariable: z
    .string()
    .regex(
      /^HONE_JUDGE_KEY(_[A-Z0-9_]{1,64})?$/,
      "HONE_JUDGE_KEY, or a name that begins with HONE_JUDGE_KEY_",
    )
    .optional(),
};

/** Keys of judges that call a model. */
const modelCall = {
  /** The address of an OpenAI-compatible API, up to and including `/v1`. */
  baseUrl: url,
  model: z.string().min(1).max(MAX_JUDGE_NAME_CHARACTERS),
  /** The user's description of good and bad answers. */
  rubric: z.string().min(1).max(65_536),
  temperature: z.number().min(0).max(2).default(0),
  maxTokens: z.number().int().min(1).max(65_536).default(1_024),
  /** The price of a million tokens in any currency; the cost of the grades is reported in it. */
  price: z
    .strictObject({ input: z.number().min(0).default(0), output: z.number().min(0).default(0) })
    .prefault({}),
};

/** The checks of the judge `degenerate`. */
export const DEGENERATE_CHECKS = ["loops", "control_tokens", "script", "tool_calls"] as const;

/** One judge. */
export const judgeSchema = z.discriminatedUnion("kind", [
  /** The return of the environment. */
  z.strictObject({ kind: z.literal("environment"), ...common }),
  /** The share of turns whose answer had the required format. */
  z.strictObject({ kind: z.literal("format"), ...common }),
  /** 1 if the answer equals the ground truth character by character, except for spaces around it. */
  z.strictObject({
    kind: z.literal("exact"),
    ...common,
    /** The answer is the last match of this pattern, or the match's first group if it has one; absent = the whole text. */
    pattern: pattern.optional(),
    flags,
    ignoreCase: z.boolean().default(false),
  }),
  /** 1 if the pattern matches somewhere in the text. */
  z.strictObject({ kind: z.literal("regex"), ...common, pattern, flags }),
  /** 1 if the number in the answer equals the ground truth. */
  z.strictObject({
    kind: z.literal("gsm8k"),
    ...common,
    /**
     * The methods of verl: strict takes the number after `####`, flexible takes the last number as it is written. last_number
     * also accepts other ways of writing it.
     */
    method: z.enum(Gsm8kMethod).default(Gsm8kMethod.strict),
  }),
  /** 1 if the last boxed answer equals the ground truth after both are normalised. */
  z.strictObject({ kind: z.literal("math"), ...common }),
  /** 1 if the last `Answer: …` (or, without one, the last box) equals the ground truth, else -1. */
  z.strictObject({ kind: z.literal("math_dapo"), ...common }),
  /** 1 if the answer is JSON that fits the schema. */
  z.strictObject({
    kind: z.literal("json_schema"),
    ...common,
    /** JSON schema, draft 2020-12. */
    schema: z.record(z.string(), z.unknown()),
  }),
  /** -1 if one of the checks finds degenerate text in the episode, else 0. */
  z.strictObject({
    kind: z.literal("degenerate"),
    ...common,
    checks: z.array(z.enum(DEGENERATE_CHECKS)).min(1).default(["loops", "control_tokens"]),
    /** Unicode names of the scripts that answers may be written in, for the check `script`. */
    scripts: z
      .array(z.string().refine(isScript, "a script of Unicode, such as Latin"))
      .min(1)
      .default(["Latin"]),
  }),
  /** Whether the Python code of the answer passes the row's unit tests. */
  z.strictObject({
    kind: z.literal("python"),
    ...common,
    /** all: 1 if every test passes, else 0; share: the share of tests that pass. */
    score: z.enum(["all", "share"]).default("all"),
    /** Time limit of the code together with each test. */
    timeMs: deadlineMs.default(10_000),
  }),
  /** The result of a user's function. */
  z.strictObject({
    kind: z.literal("module"),
    ...common,
    /** A TypeScript or JavaScript file below the project folder that exports `computeScore`. */
    path: z.string().min(1).max(MAX_PATH_CHARACTERS),
    deadlineMs: deadlineMs.default(30_000),
  }),
  /** The score that a user's server answers. */
  z.strictObject({ kind: z.literal("http"), ...common, ...remote, url }),
  /** The grade that a model gives the answer, in [0, 1]. */
  z.strictObject({
    kind: z.literal("llm"),
    ...common,
    ...remote,
    ...modelCall,
    /** The range of the model's grades, which are scaled to [0, 1]. */
    scale: z
      .strictObject({ min: z.number(), max: z.number() })
      .refine(({ min, max }) => min < max, "a min below its max")
      .default({ min: 0, max: 10 }),
  }),
  /** The output of a trained classifier for the conversation. */
  z.strictObject({
    kind: z.literal("reward_model"),
    ...common,
    /** A folder below the project folder with model.onnx (or onnx/model.onnx) and the tokenizer's files. */
    path: z.string().min(1).max(MAX_PATH_CHARACTERS),
    /** The index of the model's output that is the score. */
    label: z.number().int().min(0).default(0),
    /** How an output becomes a score: unchanged, or through the logistic function. */
    squash: z.enum(["none", "sigmoid"]).default("none"),
    /** If the conversation is longer, only its last tokens are read. */
    maxTokens: z.number().int().min(1).max(1_048_576).default(4_096),
  }),
  /** A reward that is given after the rollout has ended, within `rollout.rewardDeadlineMs`. */
  z.strictObject({
    kind: z.literal("later"),
    ...common,
    /** The value if no reward comes in time; absent = the rollout is then infra_failed and left out. */
    default: z.number().optional(),
  }),
  /** The rank of an answer within its group, in [0, 1]: one call of a model ranks all answers of a group once they are complete. */
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
/** A judge that compares the rollouts of a group. */
export type GroupJudgeConfig = Extract<JudgeConfig, { kind: "group" }>;
/** A judge whose score somebody gives after the rollout has ended. */
export type LaterJudgeConfig = Extract<JudgeConfig, { kind: "later" }>;
/** A judge that scores an episode by itself as soon as it has ended. */
export type EpisodeJudgeConfig = Exclude<JudgeConfig, GroupJudgeConfig | LaterJudgeConfig>;

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
