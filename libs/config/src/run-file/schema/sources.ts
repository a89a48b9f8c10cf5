/** Where a run's tasks come from. docs/data.md shows the same for people. */

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

/** Rows that are left out, by their `prompt`. */
const filter = z
  .strictObject({
    /** Rows whose prompt is longer; absent = none. Characters of all its messages together. */
    maxPromptCharacters: z.number().int().min(1).optional(),
    /** Rows whose prompt came before in the same file. */
    dropDuplicates: z.boolean().default(false),
    /** Rows without a prompt, or with one of spaces only. */
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

/** A dataset in the folder layout of the Hugging Face hub: files of rows, whose names tell the split. */
const huggingFaceSource = z.strictObject({
  source: z.literal("hugging_face"),
  /** Folder below the project folder, or an id of the hub. */
  path,
  /** Branch, tag or commit of the hub's repository; a commit names the same rows for ever. */
  revision: z.string().min(1).max(255).default("main"),
  split: z.string().min(1).max(MAX_NAME_CHARACTERS).default("train"),
  /** Folder within it that holds one configuration of several. */
  subset: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
  filter,
});

/** A server that hands out rows. */
const httpSource = z.strictObject({
  source: z.literal("http"),
  url: z.string().refine(isHttpUrl, "an address that begins with http:// or https://"),
  /** Environment variable of the dataset service with the bearer token. */
  keyVariable: z
    .string()
    .regex(
      /^HONE_DATASET_KEY(_[A-Z0-9_]{1,64})?$/,
      "HONE_DATASET_KEY, or a name that begins with HONE_DATASET_KEY_",
    )
    .optional(),
});

/** Files of rows: all of them can be gone through, and stay what they are. */
export const fileSourceSchema = z.discriminatedUnion("source", [
  jsonlSource,
  parquetSource,
  huggingFaceSource,
]);

const rowSource = z.discriminatedUnion("source", [jsonlSource, parquetSource, huggingFaceSource, httpSource]);

/** Rows of several sources; each comes as often as its weight says, and goes round for ever on its own. */
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
/** A source of rows that are no mix. */
export type RowSource = z.output<typeof rowSource>;
export type RowFilter = NonNullable<z.output<typeof filter>>;
