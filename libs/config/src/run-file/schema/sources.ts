/** The sources of a run's tasks. docs/data.md describes the same for users. */

import { z } from "zod";
import { isHttpUrl } from "./http-url.ts";

const MAX_NAME_CHARACTERS = 128;
const MAX_PATH_CHARACTERS = 1_024;
const MAX_PARTS = 64;

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

/** A mix of several sources of rows, drawn in proportion to their weights. Each source starts again when it is at its end. */
const mixSource = z.strictObject({
  source: z.literal("mix"),
  parts: z
    .array(z.strictObject({ weight: z.number().positive().default(1), tasks: rowSource }))
    .min(1)
    .max(MAX_PARTS),
});

export const taskSourceSchema = z.discriminatedUnion("source", [
  environmentSource,
  jsonlSource,
  parquetSource,
  huggingFaceSource,
  httpSource,
  mixSource,
]);

export type TaskSource = z.output<typeof taskSourceSchema>;
export type FileSource = z.output<typeof fileSourceSchema>;
/** A source of rows that is not a mix. */
export type RowSource = z.output<typeof rowSource>;
export type RowFilter = NonNullable<z.output<typeof filter>>;
