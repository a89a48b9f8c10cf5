/** Reads the weights of a policy version without blocking the generations of the calling thread for long. */

import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { findBaseFolder } from "@hone/checkpoint";
import type { EightBitType } from "@hone/tensor";
import { PolicyLoadError } from "../../domain/errors.ts";
import type { PolicySource } from "../../domain/inference-engine.ts";
import { decodeError, type WireError } from "../messages.ts";
import { loadPolicyFolder, type ReadyPolicy } from "./load-policy-folder.ts";

/** What a thread that reads weights shall do. */
export interface ReadOrder {
  readonly source: PolicySource;
  readonly eightBits: EightBitType | undefined;
}

/** Its answer. */
export type ReadPolicy =
  | ({ readonly kind: "read" } & ReadyPolicy)
  | { readonly kind: "failed"; readonly error: WireError };

/** Smaller files are read faster than a thread starts. */
const MIN_THREAD_BYTES = 64 * 2 ** 20;
const WEIGHTS_SUFFIX = ".safetensors";

/**
 * @param eightBits quantizes the weights. @default float32
 * @param minThreadBytes weights of at least this size are read by a thread of their own.
 * @throws {PolicyLoadError} as {@link loadPolicyFolder} does, and when its thread ends without an answer.
 */
export async function readPolicy(
  source: PolicySource,
  eightBits?: EightBitType,
  minThreadBytes = MIN_THREAD_BYTES,
): Promise<ReadyPolicy> {
  const bytes = (await weightBytes(source.folder)) + (await weightBytes(await baseOf(source)));
  const isLarge = bytes >= minThreadBytes;
  return isLarge ? readInWorker({ source, eightBits }) : loadPolicyFolder(source, eightBits);
}

/** The folder of the base of adapters; undefined without adapters, and if it cannot be found, which the load will report. */
async function baseOf({ folder, base }: PolicySource): Promise<string | undefined> {
  return base ?? (await findBaseFolder(folder).catch(() => undefined));
}

/** Size of all files with weights; 0 if the folder cannot be read, which the load will report. */
async function weightBytes(folder: string | undefined): Promise<number> {
  if (folder === undefined) return 0;
  const names = await readdir(folder).catch(() => []);
  const sizes = names
    .filter((name) => name.endsWith(WEIGHTS_SUFFIX))
    .map(async (name) => (await stat(path.join(folder, name)).catch(() => undefined))?.size ?? 0);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function readInWorker(order: ReadOrder): Promise<ReadyPolicy> {
  const worker = new Worker(new URL("./read-policy-worker.ts", import.meta.url), { workerData: order });
  try {
    const answer = await new Promise<ReadPolicy>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", (code) =>
        reject(new Error(`the thread that reads it ended with exit code ${code}`)),
      );
    });
    if (answer.kind === "failed") throw decodeError(answer.error);
    return { spec: answer.spec, weights: answer.weights };
  } catch (cause) {
    if (cause instanceof PolicyLoadError) throw cause;
    const { model, version, folder } = order.source;
    throw new PolicyLoadError(`Cannot load version ${version} of ${model} from ${folder}`, { cause });
  } finally {
    void worker.terminate();
  }
}
