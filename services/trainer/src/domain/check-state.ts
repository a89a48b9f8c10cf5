/** Whether the state that a run goes on from is the one that was committed. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { TerminalError } from "@hone/core";

/** Of a whole model, and of adapters. */
const WEIGHTS_FILES = ["model.safetensors", "adapter_model.safetensors"];
/** A file of the embedded engine, or a folder of shards, which has this file once it is whole. */
const OPTIMIZER_FILES = ["optimizer.safetensors", "optimizer/.metadata"];

/** The files of a committed version are not those that were committed: training on would make another run of it. */
export class BrokenStateError extends TerminalError {
  constructor(file: string, rule: string, value: string) {
    super("BROKEN_STATE", `Cannot go on from ${file} as ${rule}: current value is ${value}`);
  }
}

/**
 * Checks the weights by their digest, and that the optimizer is there where it was written. Weights in several files
 * are left to their reader.
 * @param digest SHA-256 that the commit recorded, hexadecimal.
 * @throws {BrokenStateError} when they are others, or the optimizer is gone: it would begin anew in silence.
 */
export async function checkState(
  folder: string,
  digest: string,
  { hasOptimizer }: { readonly hasOptimizer: boolean },
): Promise<void> {
  const weights = await firstOf(WEIGHTS_FILES.map((name) => path.join(folder, name)));
  if (weights === undefined) return;
  const hash = createHash("sha256");
  await pipeline(createReadStream(weights), hash);
  const found = hash.digest("hex");
  if (found !== digest) throw new BrokenStateError(weights, `its SHA-256 must be ${digest}`, found);
  if (!hasOptimizer) return;
  const optimizers = OPTIMIZER_FILES.map((name) => path.join(folder, name));
  if ((await firstOf(optimizers)) === undefined)
    throw new BrokenStateError(optimizers.join(" or "), "it belongs to the state", "no such file");
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
