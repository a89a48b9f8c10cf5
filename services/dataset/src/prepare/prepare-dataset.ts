/**
 * Turns a public data set, in a folder as it is published, into `train.jsonl` and `test.jsonl`.
 *
 * P1: a file is there only when it is whole; what was there before stays until then.
 * P2: records without question or answer are left out and counted, never made up.
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
  /** Folder of the files that are written. */
  readonly to: string;
  /** In place of the data set's usual one. */
  readonly instruction?: string | undefined;
  /** `agent_name` of every row; absent = the run's agent plays them. */
  readonly agentName?: string | undefined;
}

export interface PreparedSplit {
  readonly split: string;
  /** The file that was written. */
  readonly file: string;
  readonly rows: number;
  /** Records without a question or an answer. */
  readonly leftOut: number;
}

const SPLITS = ["train", "test"] as const;

/**
 * @returns the splits that are there, at least one.
 * @throws {SourceError} when the folder holds none, or a file cannot be read.
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
 * Out of all files of a public data set those that are read, of every split.
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

/** The subset's files where there are some, all of the split otherwise. */
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
        `Cannot prepare the split "${split}" as its files must hold records with question and answer: current value is ${leftOut} without`,
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
