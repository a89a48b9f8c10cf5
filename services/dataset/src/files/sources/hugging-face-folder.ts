/**
 * Datasets in the folder layout of the Hugging Face hub: files of rows anywhere below the folder, whose path names the split
 * between separators (`data/train-00000-of-00002.parquet`, `main/test.jsonl`, `train/part.parquet`).
 */

import { readdir } from "node:fs/promises";
import path from "node:path";
import { fileBelow } from "@hone/config";
import { describeError } from "@hone/core";
import { SourceError } from "../../errors.ts";

export interface HuggingFaceFolder {
  /** Below `root`. */
  readonly path: string;
  readonly split: string;
  readonly subset?: string | undefined;
}

const ROWS = /\.(parquet|jsonl|json|ndjson)$/i;
/** Files that hold no rows although their names end like those that do. */
const NOT_ROWS = /(^|\/)(dataset_infos?|state|config)\.json$|(^|\/)\./;
/** Most files that an error lists. */
const SHOWN_FILES = 10;

/**
 * Lists the split's files, ordered by their paths below `root`.
 * @throws {SourceError} when the folder does not exist or holds no file of the split.
 */
export async function filesOfSplit(root: string, folder: HuggingFaceFolder): Promise<string[]> {
  const all = await filesBelow(root, folder.path);
  return chooseFiles(all, folder).map((file) => path.join(folder.path, file));
}

/**
 * Chooses the files of a split from all files of a data set, in order.
 * @throws {SourceError} when there is none.
 */
export function chooseFiles(paths: readonly string[], folder: HuggingFaceFolder): string[] {
  const { split, subset } = folder;
  const all = paths.filter((file) => ROWS.test(file) && !NOT_ROWS.test(file)).sort();
  const ofSubset = subset === undefined ? all : all.filter((file) => namesPart(file, subset));
  const files = ofSubset.filter((file) => namesPart(file, split));
  if (files.length > 0) return files;
  const shown = all.slice(0, SHOWN_FILES).join(", ") || "no files of rows";
  throw new SourceError(
    `${folder.path} has no files of the split "${split}"${subset === undefined ? "" : ` of the subset "${subset}"`}; it has ${shown}`,
    { path: "split", allowed: "the name of a split that the data set holds" },
  );
}

/** Lists every file in a folder below `root`, and in its own folders. @throws {SourceError} when there is no such folder. */
export async function filesBelow(root: string, named: string): Promise<string[]> {
  try {
    const folder = await fileBelow(root, named, "path");
    const names = await readdir(folder, { recursive: true });
    return names.map((name) => name.replaceAll(path.sep, "/"));
  } catch (cause) {
    throw new SourceError(
      `the dataset "${named}" cannot be read (${describeError(cause)}); give a folder below HONE_FILES`,
      { path: "path", allowed: "a folder below HONE_FILES" },
      { cause },
    );
  }
}

/** Whether a path names a split or a subset, between separators. */
function namesPart(file: string, part: string): boolean {
  return file.split(/[/._-]/).includes(part) || `/${file}`.includes(`/${part}/`);
}
