/** Writes a small random model with a ChatML tokenizer as a folder in the Hugging Face layout. */

import { ElementType, saveCheckpoint } from "@hone/checkpoint";
import { configFromSpec, initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";

export interface TinyModelOptions {
  /** Its longest conversation, in tokens, which are characters. @default 1024 */
  readonly maxPositions?: number;
  /** Its chat template. @default one without tools */
  readonly chatTemplate?: string;
}

/** Writes a Llama of two layers. */
export async function saveTinyModel(folder: string, options: TinyModelOptions = {}): Promise<void> {
  const { maxPositions = 1_024, chatTemplate } = options;
  const spec = resolveModelSpec({
    family: "llama",
    vocabSize: chatmlTokenizer().vocabSize,
    hiddenSize: 32,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    isTied: true,
    maxPositions,
    eosTokenIds: [chatmlTokenizer().eosTokenId ?? 0],
  });
  const tensors = listParameters(spec).map(({ name }) => ({ name, type: ElementType.F32 }));
  await saveCheckpoint(folder, {
    spec,
    weights: initialiseWeights(spec, 3),
    companions: chatmlTokenizerFiles(chatTemplate),
    origin: { config: configFromSpec(spec), layout: { shards: [{ file: "model.safetensors", tensors }] } },
  });
}
