/** Writes a small random model with a ChatML tokenizer as a folder in the Hugging Face layout. */

import { ElementType, saveCheckpoint } from "@hone/checkpoint";
import { configFromSpec, initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";

/** Writes a Llama of two layers. */
export async function saveTinyModel(folder: string): Promise<void> {
  const spec = resolveModelSpec({
    family: "llama",
    vocabSize: chatmlTokenizer().vocabSize,
    hiddenSize: 32,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    isTied: true,
    maxPositions: 1024,
    eosTokenIds: [chatmlTokenizer().eosTokenId ?? 0],
  });
  const tensors = listParameters(spec).map(({ name }) => ({ name, type: ElementType.F32 }));
  await saveCheckpoint(folder, {
    spec,
    weights: initialiseWeights(spec, 3),
    companions: chatmlTokenizerFiles(),
    origin: { config: configFromSpec(spec), layout: { shards: [{ file: "model.safetensors", tensors }] } },
  });
}
