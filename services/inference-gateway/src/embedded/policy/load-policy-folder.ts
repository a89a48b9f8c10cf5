/**
 * Reads the weights of a policy version and makes sure they are the ones announced. Adapters are merged into their base
 * here: a version of them is a small folder, and generation costs what it costs without them.
 */

import { loadMerged, type WeightAllocator } from "@hone/checkpoint";
import type { ModelSpec, Weights } from "@hone/nn";
import { PolicyLoadError } from "../../domain/errors.ts";
import type { PolicySource } from "../../domain/inference-engine.ts";

/** Arrays of a few megabytes each would lie in small pages, and each page is slow to touch first; larger ones do not. */
const BLOCK_BYTES = 64 * 2 ** 20;

/** @throws {PolicyLoadError} when the folder holds no model that can be served, or another one. */
export async function loadPolicyFolder(source: PolicySource): Promise<{ spec: ModelSpec; weights: Weights }> {
  const { model, version, folder, digest, base } = source;
  const action = `Cannot load version ${version} of ${model}`;
  const loaded = await loadMerged(folder, {
    allocate: inBlocks(),
    ...(base !== undefined && { findBase: async () => base }),
  }).catch((cause: unknown) => {
    throw new PolicyLoadError(`${action} as ${folder} must be a readable model folder`, { cause });
  });
  if (loaded.digest !== digest) {
    throw new PolicyLoadError(
      `${action} as the SHA-256 of its weights must be ${digest}: current value is ${loaded.digest}`,
    );
  }
  return { spec: loaded.spec, weights: loaded.weights };
}

/** Cuts arrays out of blocks, which are as large as what was given before, up to {@link BLOCK_BYTES}. */
function inBlocks(): WeightAllocator {
  let block = new ArrayBuffer(0);
  let used = 0;
  let given = 0;
  return function allocate(values) {
    const bytes = values * Float32Array.BYTES_PER_ELEMENT;
    if (used + bytes > block.byteLength) {
      block = new ArrayBuffer(Math.max(bytes, Math.min(given, BLOCK_BYTES)));
      used = 0;
    }
    const array = new Float32Array(block, used, values);
    used += bytes;
    given += bytes;
    return array;
  };
}
