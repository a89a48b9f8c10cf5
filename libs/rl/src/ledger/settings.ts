/** What of a run file two runs are compared by: everything but its name and the place or text of its tokenizer. */

import { canonicalJson } from "./canonical-json.ts";
import { sha256 } from "./chain.ts";

type Tree = Readonly<Record<string, unknown>>;

/** @param config the resolved run file, also in its published form, which names the place of the tokenizer. */
export function comparableSettings(config: Tree): Tree {
  const { name: _, model, ...rest } = config;
  const { tokenizer: __, init, ...ofModel } = (model ?? {}) as Tree;
  if (init === undefined) return { ...rest, model: ofModel };
  const { tokenizer: ___, ...ofInit } = init as Tree;
  return { ...rest, model: { ...ofModel, init: ofInit } };
}

/** Their digest, of which every row of the chain has one. */
export function settingsDigest(config: Tree): string {
  return sha256(canonicalJson(comparableSettings(config)));
}
