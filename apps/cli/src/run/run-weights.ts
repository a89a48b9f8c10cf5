/**
 * Finds the weights of a run in the state folder:
 *
 *   runs/<run>/checkpoints/step-<k>/       checkpoints, in the files and types of the model that the run started from
 *   runs/<run>/state/<k>-<epoch>/          the newest versions, as float32, from which the run continues
 *   runs/<run>/model/                      where the start model came from; for adapters, also their base model
 */

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import type { BaseName } from "./export-model.ts";

/** A version that can be exported. */
export interface RunWeights {
  readonly version: number;
  readonly folder: string;
}

/** The form of a run's id; other text could name a folder elsewhere. */
const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** The folder of a run. @throws {UsageError} when the text cannot be the id of a run. */
export function runFolder(stateFolder: string, run: string): string {
  if (!RUN_ID.test(run)) throw new UsageError(`${run} is not the id of a run; hone status shows the ids`);
  return join(stateFolder, "runs", run);
}

/**
 * Finds the weights of a version: those of a checkpoint if there is one, otherwise those of a state.
 * @param version undefined = the newest checkpoint, or the newest state if there is no checkpoint.
 * @throws {UsageError} when there are none of this version.
 */
export async function findRunWeights(
  stateFolder: string,
  run: string,
  version: number | undefined,
): Promise<RunWeights> {
  const folder = runFolder(stateFolder, run);
  const checkpoints = await weightsIn(join(folder, "checkpoints"), /^step-(\d+)$/);
  const states = await weightsIn(join(folder, "state"), /^(\d+)-\d+$/);
  const isWanted = (each: RunWeights) => version === undefined || each.version === version;
  const found = checkpoints.findLast(isWanted) ?? states.findLast(isWanted);
  if (found !== undefined) return found;
  const versions = [...new Set([...checkpoints, ...states].map((each) => each.version))].sort(
    (a, b) => a - b,
  );
  throw new UsageError(
    versions.length === 0
      ? `run ${run} has no weights in ${folder}`
      : `run ${run} has no version ${version}; it has ${versions.join(", ")}`,
  );
}

/** The base model of a run's adapters. */
export interface RunBase {
  readonly folder: string;
  /** Its name in the run file. */
  readonly name: BaseName;
}

/** @returns the base model; undefined for a run that trains its whole model. */
export async function findBase(stateFolder: string, run: string): Promise<RunBase | undefined> {
  const model = join(stateFolder, "runs", run, "model");
  const folder = join(model, "base");
  const isThere = await stat(folder).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  const { reference } = JSON.parse(await readFile(join(model, "origin.json"), "utf8")) as {
    reference: BaseName;
  };
  return { folder, name: reference };
}

/** The weights in a folder, ordered by version and then by epoch. */
async function weightsIn(parent: string, name: RegExp): Promise<RunWeights[]> {
  return (await namesIn(parent))
    .sort(new Intl.Collator("en", { numeric: true }).compare)
    .map((each) => ({ version: Number(name.exec(each)?.[1] ?? Number.NaN), folder: join(parent, each) }))
    .filter(({ version }) => !Number.isNaN(version));
}

/** The names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
}
