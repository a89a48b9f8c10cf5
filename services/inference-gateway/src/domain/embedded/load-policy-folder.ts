/**
 * Reads the weights of a policy version and makes sure they are the ones announced. Adapters are merged into their base
 * here: a version of them is a small folder, and generation costs what it costs without them.
 */

import type { ModelSpec, Weights } from "@hone/nn";
import { loadMerged } from "@hone/train";
import { PolicyLoadError } from "../errors.ts";
import type { PolicySource } from "../inference-engine.ts";

/** @throws {PolicyLoadError} when the folder holds no model that can be served, or another one. */
export async function loadPolicyFolder(source: PolicySource): Promise<{ spec: ModelSpec; weights: Weights }> {
  const { model, version, folder, digest, base } = source;
  const action = `Cannot load version ${version} of ${model}`;
  const loaded = await loadMerged(folder, base === undefined ? {} : { findBase: async () => base }).catch(
    (cause: unknown) => {
      throw new PolicyLoadError(`${action} as ${folder} must be a readable model folder`, { cause });
    },
  );
  if (loaded.digest !== digest) {
    throw new PolicyLoadError(
      `${action} as the SHA-256 of its weights must be ${digest}: current value is ${loaded.digest}`,
    );
  }
  return { spec: loaded.spec, weights: loaded.weights };
}
