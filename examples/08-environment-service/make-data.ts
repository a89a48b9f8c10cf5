/**
 * Writes the generated files of this example:
 *
 *     node examples/08-environment-service/make-data.ts
 *
 *   tokenizer.json, tokenizer_config.json, chat_template.jinja   a token for each cell of a map and for each action
 *   moves.jsonl                                                  random actions on random maps, which show the form of an answer
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

const files = {
  ...wordTokenizerFiles({
    roles: ["system", "user", "assistant"],
    words: ACTIONS,
    characters: [...CELLS, "\n"],
  }),
  "moves.jsonl": moves.map((move) => `${JSON.stringify(move)}\n`).join(""),
};
for (const [name, content] of Object.entries(files)) {
  await writeFile(path.join(import.meta.dirname, name), content);
}
