/**
 * Writes this example's tokenizer: one token for each symbol of the games and each word of their texts and actions, so that a model
 * from scratch reads a state in some dozens of tokens and writes an action in four.
 *
 *     node examples/07-worlds/make-tokenizer.ts
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { wordTokenizerFiles } from "@hone/tokenizer";

const PRODUCTS = 20;
const ids = Array.from({ length: PRODUCTS }, (_, index) => `p${String(index + 1).padStart(2, "0")}`);

/** Words of the grid games' answers. */
const moves = ["<answer>", "</answer>", "Left", "Down", "Right", "Up"];
/** Words of the shop's pages in the compact layout. Prices are written digit by digit, as the places on a map are. */
const shop = [
  ...["search[", "click[", "]", "search", "results", "item", "chosen", "done", "max", "attributes"],
  ...["back to search", "< prev", "next >", "buy now"],
  ...["mug", "lamp", "shirt", "bag", "chair"],
  ...["soft", "warm", "round", "thin", "plain", "heavy"],
  ...["color", "red", "blue", "green", "size", "small", "large"],
  ...ids,
];

const files = wordTokenizerFiles({
  roles: ["system", "user", "assistant"],
  words: [...moves, ...shop],
  // Player, empty, hole or target, goal, in a hole or box, on the goal or target, player on a target, wall; numbers.
  characters: [..."P_OGX√S#", "\n", " ", ..."0123456789", ..."-,"],
  maxLength: 1_024,
});
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
