/** The files of a state with their digests, which are committed with the version and compared before the files are read. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";

/** SHA-256 in hexadecimal, keyed by the path below the state's folder, with "/". */
export type StateFiles = Readonly<Record<string, string>>;

/** Names of the file of weights where there is only one: for a whole model, and for adapters. */
export const WEIGHTS_FILES = ["model.safetensors", "adapter_model.safetensors"];

/** Holds a folder for each of the run's further policies. */
const POLICIES_FOLDER = "policies";

/** Larger pieces than a stream's default, since states have gigabytes. */
const PIECE_BYTES = 2 ** 20;

/**
 * The files of a state that was just written.
 * @param weightsDigest SHA-256 of the file of weights, which its writer knows, so that the file is not read again.
 */
export async function digestState(folder: string, weightsDigest: string): Promise<StateFiles> {
  const files: Record<string, string> = {};
  for (const name of await namesOfFiles(folder)) {
    files[name] = WEIGHTS_FILES.includes(name) ? weightsDigest : await digestOfFile(path.join(folder, name));
  }
  return files;
}

/** The files below a folder, in the order of their names. */
export async function namesOfFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join("/"))
    .sort();
}

export async function digestOfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: PIECE_BYTES }), hash);
  return hash.digest("hex");
}

/** The folder of a further policy within a state, or in a checkpoint. */
export function policyFolder(name: string): string {
  return path.posix.join(POLICIES_FOLDER, name);
}

/**
 * SHA-256 of the weights in a folder of a state.
 * @param below the folder within the state; empty = the state itself.
 */
export function weightsDigest(files: StateFiles, below: string): string | undefined {
  const digests = WEIGHTS_FILES.map((name) => files[path.posix.join(below, name)]);
  return digests.find((digest) => digest !== undefined);
}
