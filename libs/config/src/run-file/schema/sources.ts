/** The sources of a run's tasks. docs/data.md describes the same for users. */

import { curriculumSchema } from "@hone/rl";
import { z } from "zod";
import { agentSchema } from "./agent.ts";
import { environmentServiceSource } from "./environment-service-source.ts";
import { isHttpUrl } from "./http-url.ts";
import { judgesSchema } from "./judges.ts";

const MAX_NAME_CHARACTERS = 128;
const MAX_PATH_CHARACTERS = 1_024;
const MAX_PARTS = 64;
/** A step has no more tasks. */
const MAX_GROUPS = 10_000;
/** As many jobs of a run as the queue holds. */
export const MAX_CONCURRENCY = 50_000;

const seedNumber = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const path = z.string().min(1).max(MAX_PATH_CHARACTERS);

const environmentSource = z.strictObject({
  source: z.literal("environment"),
  environment: z.string().min(1).max(MAX_NAME_CHARACTERS),
  config: z.record(z.string(), z.unknown()).default({}),
  /** Half-open range of environment seeds. */
  seeds: z.strictObject({ from: seedNumber, to: seedNumber }),
});

/** Which rows are left out, depending on their `prompt`. */
const filter = z
  .strictObject({
    /** Leaves out rows whose prompt has more characters, counted over all its messages; absent = no limit. */
    maxPromptCharacters: z.number().int().min(1).optional(),
    /** Leaves out rows whose prompt occurred before in the same file. */
    dropDuplicates: z.boolean().default(false),
    /** Leaves out rows without a prompt, or with a prompt of spaces only. */
    dropEmpty: z.boolean().default(false),
  })
  .optional();

const jsonlSource = z.strictObject({
  source: z.literal("jsonl"),
  /** File below the project folder. */
  path,
  filter,
});

const parquetSource = z.strictObject({
  source: z.literal("parquet"),
  /** File below the project folder. */
  path,
  filter,
});

/** A dataset in the folder layout of the Hugging Face hub: files of rows whose names contain the split. */
const huggingFaceSource = z.strictObject({
  source: z.literal("hugging_face"),
  /** A folder below the project folder, or an id of the hub. */
  path,
  /** Branch, tag or commit of the repository on the hub; the rows of a commit never change. */
  revision: z.string().min(1).max(255).default("main"),
  split: z.string().min(1).max(MAX_NAME_CHARACTERS).default("train"),
  /** The folder within the dataset that holds one of several configurations. */
  subset: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
  filter,
});

/** An HTTP server that returns rows. */
const httpSource = z.strictObject({
  source: z.literal("http"),
  url: z.string().refine(isHttpUrl, "an address that begins with http:// or https://"),
  /** The environment variable of the dataset service that holds the bearer token. */
  keyVariable: z
    .string()
    .regex(
      /^HONE_DATASET_KEY(_[A-Z0-9_]{1,64})?$/,
      "HONE_DATASET_KEY, or a name that begins with HONE_DATASET_KEY_",
    )
    .optional(),
});

/** Sources that are files: all rows can be read, and they do not change. */
export const fileSourceSchema = z.discriminatedUnion("source", [
  jsonlSource,
  parquetSource,
  huggingFaceSource,
]);

const rowSource = z.discriminatedUnion("source", [jsonlSource, parquetSource, huggingFaceSource, httpSource]);

const partSource = z.discriminatedUnion("source", [
  environmentSource,
  environmentServiceSource,
  ...rowSource.options,
]);

/** A part of a mix: tasks of one kind, with what is their own. */
const mixPart = z
  .strictObject({
    /** Distinguishes the part in figures, tasks and spans. @default the name of its environment; none for rows */
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "1 to 64 characters out of letters, digits, _, . and -")
      .optional(),
    /** The part's share of the tasks, in proportion to the other weights. @default 1 */
    weight: z.number().positive().optional(),
    /** In place of the weight: how many tasks of each step are the part's. */
    groups: z.number().int().min(1).max(MAX_GROUPS).optional(),
    tasks: partSource,
    /** Who plays the part's tasks. @default the run's agent; in the evaluation, that of the training part of the same name */
    agent: agentSchema.optional(),
    /** Who judges them. @default as the agent */
    judge: judgesSchema.unwrap().optional(),
    /** Most turns of a rollout. @default as the agent */
    maxTurns: z.number().int().min(1).max(1_000).optional(),
    /** How many of its rollouts are in the queue or played at once, over all processes. @default as the agent, or no limit */
    maxConcurrency: z.number().int().min(1).max(MAX_CONCURRENCY).optional(),
    /** Which of the part's tasks are trained. @default dataset.curriculum */
    curriculum: curriculumSchema.optional(),
  })
  .transform(({ name, ...part }) => {
    const given = name ?? (part.tasks.source === "environment" ? part.tasks.environment : undefined);
    return { ...(given !== undefined && { name: given }), ...part };
  });

/** A mix of several sources. Each starts again when it is at its end. */
const mixSource = z.strictObject({
  source: z.literal("mix"),
  parts: z.array(mixPart).min(1).max(MAX_PARTS),
});

export const taskSourceSchema = z.discriminatedUnion("source", [
  environmentSource,
  jsonlSource,
  parquetSource,
  huggingFaceSource,
  httpSource,
  mixSource,
  environmentServiceSource,
]);

export type TaskSource = z.output<typeof taskSourceSchema>;
export type FileSource = z.output<typeof fileSourceSchema>;
/** A source that is not a mix. */
export type PartSource = z.output<typeof partSource>;
export type MixPart = z.output<typeof mixPart>;
/** A source of rows that is not a mix. */
export type RowSource = z.output<typeof rowSource>;
export type RowFilter = NonNullable<z.output<typeof filter>>;
