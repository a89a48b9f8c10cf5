/** Makes a critic of a language model: its layers, under a value head that says 0 of everything. */

import { HEAD, type ModelSpec, VALUE_BIAS, VALUE_HEAD } from "@hone/nn";
import { type SavedModel, saveCheckpoint } from "./checkpoint.ts";
import { loadMerged } from "./merged-model.ts";

/** The shape of the critic that is made of a language model. */
export function valueSpecOf(spec: ModelSpec): ModelSpec {
  return { ...spec, head: "value", isTied: false };
}

/**
 * Writes the critic in float32, with the language model's tokenizer beside it.
 * @param from the folder of a language model, or of adapters, which are merged.
 * @throws CheckpointError as `loadMerged` does.
 */
export async function saveValueModel(from: string, to: string): Promise<SavedModel> {
  const { spec, weights, companions } = await loadMerged(from);
  const { [HEAD]: _, ...layers } = weights;
  const head = { [VALUE_HEAD]: new Float32Array(spec.hiddenSize), [VALUE_BIAS]: new Float32Array(1) };
  return saveCheckpoint(to, { spec: valueSpecOf(spec), weights: { ...layers, ...head }, companions });
}
