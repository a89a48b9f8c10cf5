/**
 * Writes this example's tokenizer: 32 tokens, one per symbol of the lake and one per word of an answer, so that the
 * answer `<answer>Right</answer>` has three tokens and the end of the turn is a fourth.
 *
 *     node examples/01-frozen-lake/make-tokenizer.ts
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { wordTokenizerFiles } from "@hone/tokenizer";

const files = wordTokenizerFiles({
  roles: ["system", "user", "assistant"],
  // The parts of an answer.
  words: ["<answer>", "</answer>", "Left", "Down", "Right", "Up"],
  // Player, empty, hole, goal, player in a hole, player on the goal; rows and coordinates.
  characters: [..."P_OGX√", "\n", " ", ..."0123456789", ..."-,"],
  maxLength: 1_024,
});
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
