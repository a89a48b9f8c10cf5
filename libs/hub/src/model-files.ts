/** Which files of a repository a model is made of. */

const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";
const SHARD = /^model-\d+-of-\d+\.safetensors$/;
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

/** The files to fetch out of those that are there; weights in one file go before shards, as `transformers` has it. */
export function modelFilesOf(names: readonly string[]): string[] {
  const isSingle = names.includes(WEIGHTS);
  const isWeight = (name: string) => (isSingle ? name === WEIGHTS : name === INDEX || SHARD.test(name));
  return names.filter((name) => COMPANIONS.includes(name) || isWeight(name));
}

export function hasWeights(names: readonly string[]): boolean {
  return names.includes(WEIGHTS) || names.includes(INDEX);
}
