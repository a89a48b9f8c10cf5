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
/** Not of rows, though they end so. */
const NOT_ROWS = /(^|\/)(dataset_infos?|state|config)\.json$|(^|\/)\./;
/** Of those that are there, in an error. */
const SHOWN_FILES = 10;

/**
 * The split's files, in order of their paths, below `root`.
 * @throws {SourceError} when the folder is not there or holds no file of the split.
 */
export async function filesOfSplit(root: string, folder: HuggingFaceFolder): Promise<string[]> {
  const all = await filesBelow(root, folder.path);
  return chooseFiles(all, folder).map((file) => path.join(folder.path, file));
}

/**
 * Out of all files of a data set those of a split, in order.
 * @throws {SourceError} when there is none.
 */
export function chooseFiles(paths: readonly string[], folder: HuggingFaceFolder): string[] {
  const { split, subset } = folder;
  const all = paths.filter((file) => ROWS.test(file) && !NOT_ROWS.test(file)).sort();
  const ofSubset = subset === undefined ? all : all.filter((file) => namesPart(file, subset));
  const files = ofSubset.filter((file) => namesPart(file, split));
  if (files.length > 0) return files;
  const shown = all.slice(0, SHOWN_FILES).join(", ") || "no file of rows";
  throw new SourceError(
    `Cannot make tasks as ${folder.path} must hold files of the split "${split}"${subset === undefined ? "" : ` of "${subset}"`}: current value is ${shown}`,
    { path: "split", allowed: "the name of a split that the data set holds" },
  );
}

/** Every file below a folder below `root`. @throws {SourceError} when there is no such folder. */
export async function filesBelow(root: string, named: string): Promise<string[]> {
  try {
    const folder = await fileBelow(root, named, "path");
    const names = await readdir(folder, { recursive: true });
    return names.map((name) => name.replaceAll(path.sep, "/"));
  } catch (cause) {
    throw new SourceError(
      `Cannot make tasks as the dataset must be a folder below HONE_FILES: current value is "${named}" (${describeError(cause)})`,
      { path: "path", allowed: "a folder below HONE_FILES" },
      { cause },
    );
  }
}

/** Whether a path names a split or a subset, between separators. */
function namesPart(file: string, part: string): boolean {
  return file.split(/[/._-]/).includes(part) || `/${file}`.includes(`/${part}/`);
}
