/**
 * Writes this example's tokenizer: one token for each symbol of the games and each word of their answers and texts, so that a model
 * from scratch reads a state in some dozens of tokens and writes an action in a few.
 *
 *     node examples/07-worlds/make-tokenizer.ts
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { wordTokenizerFiles } from "@hone/tokenizer";

const files = wordTokenizerFiles({
  roles: ["system", "user", "assistant"],
  words: ["<answer>", "</answer>", "Left", "Down", "Right", "Up"],
  // Player, empty, hole or target, goal, in a hole or box, on the goal or target, player on a target, wall; numbers.
  characters: [..."P_OGX√S#", "\n", " ", ..."0123456789", ..."-,"],
  maxLength: 1_024,
});
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
