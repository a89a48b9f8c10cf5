/**
 * The weights of a run that lie in the state folder:
 *
 *   runs/<run>/checkpoints/step-<k>/       exports, in the files and types of the model that the run started from
 *   runs/<run>/state/<k>-<epoch>/          what the run goes on from: the newest versions, as float32
 *   runs/<run>/model/                      where its model came from, and with adapters the model that they belong to
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

/** What a run's id is made of; anything else would name a folder elsewhere. */
const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * The weights of a run at a version: of a checkpoint where there is one, of the state otherwise.
 * @param version undefined = the newest checkpoint, or the newest state where there is no checkpoint.
 * @param action named in errors.
 * @throws {UsageError} when there are none.
 */
export async function findRunWeights(
  stateFolder: string,
  run: string,
  version: number | undefined,
  action: "export" | "use" = "export",
): Promise<RunWeights> {
  if (!RUN_ID.test(run))
    throw new UsageError(`Cannot ${action} a run as its id has no such form: current value is ${run}`);
  const folder = join(stateFolder, "runs", run);
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
      ? `Cannot ${action} ${run} as there must be weights in ${folder}: current value is none`
      : `Cannot ${action} ${run} as its version must be one of ${versions.join(", ")}: current value is ${version}`,
  );
}

/** The model that a run's adapters belong to. */
export interface RunBase {
  readonly folder: string;
  /** What the run file calls it. */
  readonly name: BaseName;
}

/** undefined for a run that trains its whole model. */
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

/** By version, and by epoch within one. */
async function weightsIn(parent: string, name: RegExp): Promise<RunWeights[]> {
  const names = await readdir(parent).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
  return names
    .sort(new Intl.Collator("en", { numeric: true }).compare)
    .map((each) => ({ version: Number(name.exec(each)?.[1] ?? Number.NaN), folder: join(parent, each) }))
    .filter(({ version }) => !Number.isNaN(version));
}
