/**
 * Writes the generated files of this example:
 *
 *     node examples/04-any-agent/make-data.ts
 *
 *   tokenizer.json, tokenizer_config.json, chat_template.jinja   a token for each digit and for each word of the host
 *   numbers.jsonl                                                the tasks: the ten numbers
 *   games.jsonl                                                  games of a random player, which show the form of an answer
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { wordTokenizerFiles } from "@hone/tokenizer";

/** The texts of the host. */
const WORDS = ["guess", "higher", "lower", "digit"];
const DIGITS = [..."0123456789"];
const MOST_GUESSES = 4;
const NUM_GAMES = 200;

/** The generator of Numerical Recipes, which gives the same games each time. */
let state = 1;
function randomDigit(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * 10);
}

function game(): object {
  const secret = randomDigit();
  const messages = [{ role: "user", content: "guess" }];
  for (let guesses = 0; guesses < MOST_GUESSES; guesses++) {
    const guess = randomDigit();
    messages.push({ role: "assistant", content: String(guess) });
    if (guess === secret || guesses === MOST_GUESSES - 1) break;
    messages.push({ role: "user", content: secret > guess ? "higher" : "lower" });
  }
  return { messages };
}

const numbers = DIGITS.map((digit) => ({
  data_source: "guess",
  prompt: "guess",
  reward_model: { style: "rule", ground_truth: digit },
}));
const linesOf = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

const files = {
  ...wordTokenizerFiles({ roles: ["system", "user", "assistant"], words: WORDS, characters: DIGITS }),
  "numbers.jsonl": linesOf(numbers),
  "games.jsonl": linesOf(Array.from({ length: NUM_GAMES }, game)),
};
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
