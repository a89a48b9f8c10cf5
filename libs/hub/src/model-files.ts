/** Which files of a repository a model is made of. */

const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";
const SHARD = /^model-\d+-of-\d+\.safetensors$/;
/** Of adapters, which have the weights of another model in mind. */
const ADAPTER_WEIGHTS = "adapter_model.safetensors";
const ADAPTER_CONFIG = "adapter_config.json";
/** Beside the weights; config.json and tokenizer.json are missed by whoever loads the model. */
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
 * The files to fetch out of those that are there; weights in one file go before shards, as `transformers` has it, and those
 * of a model before those of adapters.
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
