/** Checks, file by file, that the state from which a run goes on is the one that was committed. */

import { stat } from "node:fs/promises";
import path from "node:path";
import { TerminalError } from "@hone/core";
import { digestOfFile, namesOfFiles, type StateFiles, WEIGHTS_FILES } from "./state-files.ts";

/** The embedded engine writes one file; fsdp2 writes a folder of shards, which has this file once it is complete. */
const OPTIMIZER_FILES = ["optimizer.safetensors", "optimizer/.metadata"];
const REMEDY =
  "Put this state folder back from a copy and the run can go on; without one, start a run from the newest checkpoint (hone export)";

/** The files of a committed version were changed afterwards: training on from them would make another run of it. */
export class BrokenStateError extends TerminalError {
  constructor(problem: string) {
    super("BROKEN_STATE", `${problem}. ${REMEDY}.`);
  }
}

/** A state as its commit recorded it. */
export interface CommittedState {
  /** SHA-256 of its weights, hexadecimal. */
  readonly digest: string;
  /** Every file of the state. Empty in rows that are older than the record of files: then only the weights are compared. */
  readonly files: StateFiles;
}

export interface ExpectedFiles {
  readonly hasOptimizer: boolean;
  readonly beside?: string;
}

/**
 * Compares every file with the digest that the commit recorded.
 * @param expected.hasOptimizer whether the optimizer must be there, for a state whose files were not recorded.
 * @param expected.beside a file of the folder that does not belong to the state.
 * @throws {BrokenStateError} naming the file that was changed, is missing, or does not belong to the state.
 */
export async function checkState(
  folder: string,
  { digest, files }: CommittedState,
  { hasOptimizer, beside }: ExpectedFiles,
): Promise<void> {
  if (Object.keys(files).length === 0) {
    await checkUnrecorded(folder, digest, hasOptimizer);
    return;
  }
  const found = await namesOfFiles(folder);
  for (const [name, expected] of Object.entries(files)) {
    const file = path.join(folder, name);
    if (!found.includes(name)) throw missing(file);
    await checkFile(file, expected);
  }
  const foreign = found.find(
    (name) => !(name in files) && name !== beside && !path.basename(name).startsWith("."),
  );
  if (foreign === undefined) return;
  throw new BrokenStateError(
    `The file ${path.join(folder, foreign)} was not there when this state was committed, and could be read in place of one that was`,
  );
}

/** Compares the weights of a folder, which are in one file. @throws {BrokenStateError} when they differ. */
export async function checkWeights(folder: string, digest: string): Promise<void> {
  const weights = await firstOf(WEIGHTS_FILES.map((name) => path.join(folder, name)));
  if (weights !== undefined) await checkFile(weights, digest);
}

/** Checks a state whose files were not recorded. A missing optimizer would otherwise start afresh without a word. */
async function checkUnrecorded(folder: string, digest: string, hasOptimizer: boolean): Promise<void> {
  const weights = await firstOf(WEIGHTS_FILES.map((name) => path.join(folder, name)));
  if (weights === undefined) return;
  await checkFile(weights, digest);
  if (!hasOptimizer) return;
  const optimizers = OPTIMIZER_FILES.map((name) => path.join(folder, name));
  if ((await firstOf(optimizers)) === undefined) throw missing(optimizers.join(" or "));
}

async function checkFile(file: string, expected: string): Promise<void> {
  const found = await digestOfFile(file);
  if (found === expected) return;
  throw new BrokenStateError(
    `The file ${file} was changed after it was committed: its SHA-256 was ${expected} and is now ${found}`,
  );
}

function missing(file: string): BrokenStateError {
  return new BrokenStateError(`The file ${file} belongs to the state of this run and is not there any more`);
}

async function firstOf(files: readonly string[]): Promise<string | undefined> {
  for (const file of files) if (await exists(file)) return file;
  return undefined;
}

function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
