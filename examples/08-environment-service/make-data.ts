/**
 * Writes the generated files of this example:
 *
 *     node examples/08-environment-service/make-data.ts
 *
 *   tokenizer.json, tokenizer_config.json, chat_template.jinja   a token for each cell of a map and for each action
 *   moves.jsonl                                                  random actions on random maps, which show the form of an answer
 *   reasoning/tokenizer.json and so on                           a token for each sentence of a task, animal and number
 *   reasoning/answers.jsonl                                      random numbers as answers, for the same reason
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { Random } from "@hone/core";
import { wordTokenizerFiles } from "@hone/tokenizer";

const ACTIONS = ["Left", "Down", "Right", "Up"];
/** Player, ice, hole, goal and start, as Gymnasium draws them. */
const CELLS = "PFHGS";
const SIZE = 4;
const NUM_MOVES = 400;

const random = new Random(1);

/** A map as the server draws it, but for whether the goal can be reached. */
function drawMap(): string {
  const cells = Array.from({ length: SIZE * SIZE }, (): string => (random.nextInt(5) === 0 ? "H" : "F"));
  cells[0] = "S";
  cells[cells.length - 1] = "G";
  cells[random.nextInt(cells.length - 1)] = "P";
  const rows = Array.from({ length: SIZE }, (_, row) => cells.slice(row * SIZE, (row + 1) * SIZE).join(""));
  return rows.join("\n");
}

const moves = Array.from({ length: NUM_MOVES }, () => ({
  messages: [
    { role: "user", content: drawMap() },
    { role: "assistant", content: ACTIONS[random.nextInt(ACTIONS.length)] },
  ],
}));

/** The sentences around an animal, as reasoning-gym and the server write them. */
const TASK =
  "Your task is to count how many legs there are in total when given a list of animals.\n\n" +
  "Now, how many legs are there in total if you have ";
const FORM = "?\n\nEnd with the answer between <answer> and </answer>.";
const ANIMALS =
  `snake, sea slug, jellyfish, flatworm, leech, chicken, bird, human, duck, dog, cat, cow, horse, lion, elephant, giraffe,
  tiger, deer, sheep, starfish, insect, ant, butterfly, beetle, bee, wasp, grasshopper, cricket, cockroach, praying mantis, firefly,
  spider, scorpion, crab, lobster, shrimp, woodlouse`.split(/,\s+/);
/** Two woodlice have 28 legs. */
const NUMBERS = Array.from({ length: 29 }, (_, legs) => String(legs));
const NUM_ANSWERS = 600;

function drawAnimals(): string {
  const animal = ANIMALS[random.nextInt(ANIMALS.length)];
  return random.nextInt(2) === 0 ? `1 ${animal}` : `2 ${animal}s`;
}

const answers = Array.from({ length: NUM_ANSWERS }, () => ({
  messages: [
    { role: "user", content: `${TASK}${drawAnimals()}${FORM}` },
    { role: "assistant", content: `<answer>${NUMBERS[random.nextInt(NUMBERS.length)]}</answer>` },
  ],
}));

const roles = ["system", "user", "assistant"];
const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const reasoning = wordTokenizerFiles({
  roles,
  words: [TASK, FORM, "<answer>", "</answer>", ...ANIMALS, ...NUMBERS],
  characters: [..." s"],
});
const files = {
  ...wordTokenizerFiles({ roles, words: ACTIONS, characters: [...CELLS, "\n"] }),
  "moves.jsonl": lines(moves),
  ...Object.fromEntries(Object.entries(reasoning).map(([name, content]) => [`reasoning/${name}`, content])),
  "reasoning/answers.jsonl": lines(answers),
};
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
