/** Selects the files of a repository that belong to a model. */

const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";
const SHARD = /^model-\d+-of-\d+\.safetensors$/;
/** Files of adapters, which belong to the weights of another model. */
const ADAPTER_WEIGHTS = "adapter_model.safetensors";
const ADAPTER_CONFIG = "adapter_config.json";
/** Files beside the weights. Whether config.json and tokenizer.json exist is checked when the model is loaded. */
const COMPANIONS = [
  "added_tokens.json",
  "chat_template.jinja",
  "config.json",
  "generation_config.json",
  "merges.txt",
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer.model",
  "tokenizer_config.json",
  "vocab.json",
];

/**
 * @returns the files to download out of all names. Weights in one file take precedence over shards, as in `transformers`, and
 * those of a model over those of adapters.
 */
export function modelFilesOf(names: readonly string[]): string[] {
  const isSingle = names.includes(WEIGHTS);
  const isAdapter = !isSingle && !names.includes(INDEX);
  const isWeight = (name: string) => {
    if (isAdapter) return name === ADAPTER_WEIGHTS || name === ADAPTER_CONFIG;
    return isSingle ? name === WEIGHTS : name === INDEX || SHARD.test(name);
  };
  return names.filter((name) => COMPANIONS.includes(name) || isWeight(name));
}

export function hasWeights(names: readonly string[]): boolean {
  return [WEIGHTS, INDEX, ADAPTER_WEIGHTS].some((name) => names.includes(name));
}
