/** Small models in folders, as runs write them, for tests of engines. */

import path from "node:path";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, type ModelSpec, resolveModelSpec } from "@hone/nn";
import type { PolicySource } from "../../domain/inference-engine.ts";

export const TEST_SPEC: ModelSpec = resolveModelSpec({
  vocabSize: 50,
  hiddenSize: 8,
  numLayers: 1,
  numHeads: 2,
  numKeyValueHeads: 1,
  maxPositions: 512,
});

/** Writes a version whose weights follow from its name and number. */
export async function writePolicy(root: string, model: string, version: number): Promise<PolicySource> {
  const folder = path.join(root, `${model}-${version}`);
  const weights = initialiseWeights(TEST_SPEC, version + model.charCodeAt(0) * 1_000);
  const { digest } = await saveCheckpoint(folder, { spec: TEST_SPEC, weights, companions: {} });
  return { model, version, folder, digest };
}
