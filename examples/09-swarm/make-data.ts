/**
 * Writes the generated files of this example:
 *
 *     node examples/09-swarm/make-data.ts
 *
 *   tokenizer.json, tokenizer_config.json, chat_template.jinja   a token for each digit
 *   digits.jsonl                                                 the tasks: ten rows, one for each digit
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { wordTokenizerFiles } from "@hone/tokenizer";

const DIGITS = [..."0123456789"];

const rows = DIGITS.map((digit) => ({
  data_source: "next-digit",
  prompt: digit,
  reward_model: { style: "rule", ground_truth: String((Number(digit) + 1) % 10) },
}));

const files = {
  ...wordTokenizerFiles({ roles: ["system", "user", "assistant"], words: [], characters: DIGITS }),
  "digits.jsonl": rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
};
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
