/**
 * Turns a public data set, in a folder as it was published, into `train.jsonl` and `test.jsonl`.
 *
 * P1: a file appears only when it is complete; an older one stays until then.
 * P2: records without question or answer are left out and counted.
 */

import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SourceError } from "../errors.ts";
import { chooseFiles, filesBelow } from "../files/sources/hugging-face-folder.ts";
import { PREPARATIONS, type Preparation, type PreparationName } from "./preparations.ts";
import { readRecords } from "./read-records.ts";

export interface PrepareOptions {
  readonly name: PreparationName;
  /** Folder of the data set. */
  readonly from: string;
  /** Folder to write the files to. */
  readonly to: string;
  /** Replaces the data set's usual instruction. */
  readonly instruction?: string | undefined;
  /** `agent_name` of every row; absent = the rows name none, and the run's agent plays them. */
  readonly agentName?: string | undefined;
}

export interface PreparedSplit {
  readonly split: string;
  /** The file that was written. */
  readonly file: string;
  readonly rows: number;
  /** Number of records without a question or an answer. */
  readonly leftOut: number;
}

const SPLITS = ["train", "test"] as const;

/**
 * @returns the splits that the folder holds, at least one.
 * @throws {SourceError} when it holds none, or a file cannot be read.
 */
export async function prepareDataset(options: PrepareOptions): Promise<PreparedSplit[]> {
  const { from, to } = options;
  const preparation: Preparation = PREPARATIONS[options.name];
  await mkdir(to, { recursive: true });
  const paths = await filesBelow(from, ".");
  const prepared: PreparedSplit[] = [];
  let missing: SourceError | undefined;
  for (const split of SPLITS) {
    let files: string[];
    try {
      files = chooseOf(paths, split, preparation).map((file) => path.join(from, file));
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      missing ??= error;
      continue;
    }
    prepared.push(await writeSplit(split, files, preparation, options));
  }
  if (prepared.length === 0 && missing !== undefined) throw missing;
  return prepared;
}

/**
 * Chooses the files that are read, those of every split, from all files of a public data set.
 * @throws {SourceError} when there is none.
 */
export function filesToPrepare(name: PreparationName, paths: readonly string[]): string[] {
  let missing: unknown;
  const files = SPLITS.flatMap((split) => {
    try {
      return chooseOf(paths, split, PREPARATIONS[name]);
    } catch (error) {
      missing ??= error;
      return [];
    }
  });
  if (files.length === 0) throw missing;
  return files;
}

/** The subset's files of the split where there are some, otherwise all files of the split. */
function chooseOf(paths: readonly string[], split: string, { subset, exclude }: Preparation): string[] {
  const candidates = paths.filter((file) => exclude?.test(file) !== true);
  const all = chooseFiles(candidates, { path: "the data set", split });
  if (subset === undefined) return all;
  const own = all.filter((file) => file.split("/").includes(subset));
  return own.length > 0 ? own : all;
}

async function writeSplit(
  split: string,
  files: readonly string[],
  preparation: Preparation,
  { to, instruction = preparation.instruction, agentName }: PrepareOptions,
): Promise<PreparedSplit> {
  let rows = 0;
  let leftOut = 0;
  async function* lines(): AsyncGenerator<string> {
    for (const file of files) {
      for await (const record of readRecords(file)) {
        const row = preparation.rowOf(record, { split, index: rows + leftOut }, instruction);
        if (row === undefined) {
          leftOut++; // P2
          continue;
        }
        rows++;
        yield `${JSON.stringify(agentName === undefined ? row : { ...row, agent_name: agentName })}\n`;
      }
    }
  }
  const file = path.join(to, `${split}.jsonl`);
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await pipeline(Readable.from(lines()), createWriteStream(temporary));
    if (rows === 0) {
      throw new SourceError(
        `the split "${split}" cannot be prepared: its records must have question and answer, but all ${leftOut} lack one`,
        { path: "from", allowed: "the folder of the public data set" },
      );
    }
    await rename(temporary, file); // P1
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return { split, file, rows, leftOut };
}
