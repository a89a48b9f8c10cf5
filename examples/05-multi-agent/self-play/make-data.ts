/**
 * Writes the rows of the game, the same each time:
 *
 *   train.jsonl, eval.jsonl   piles, and who plays: the learner against its rival, or against an earlier version of itself
 *   demos.jsonl               legal moves at random, which show how to answer and nothing about how to win
 *
 *     node examples/05-multi-agent/self-play/make-data.ts [FOLDER]
 */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Random, scriptArguments } from "@hone/core";

const LARGEST_PILE = 15;
const ROWS = { train: 1_024, eval: 64, demos: 600 };

const { positionals } = scriptArguments(process, {
  usage:
    "node examples/05-multi-agent/self-play/make-data.ts [FOLDER]\n\nWrites the rows of the game to FOLDER (data, beside this file).",
  takesMore: true,
});
const [folder = path.join(import.meta.dirname, "data")] = positionals;
const random = new Random(17);

function gameRow(_: unknown, index: number) {
  const opponent = index % 2 === 0 ? "rival" : "past";
  const players = random.nextInt(2) === 0 ? ["learner", opponent] : [opponent, "learner"];
  const pile = 4 + random.nextInt(LARGEST_PILE - 3);
  return { data_source: opponent, prompt: String(pile), pile, players };
}

function demoRow() {
  const pile = 1 + random.nextInt(LARGEST_PILE);
  return { prompt: String(pile), response: String(1 + random.nextInt(Math.min(3, pile))) };
}

const rows = {
  train: Array.from({ length: ROWS.train }, gameRow),
  eval: Array.from({ length: ROWS.eval }, gameRow),
  demos: Array.from({ length: ROWS.demos }, demoRow),
};
await mkdir(folder, { recursive: true });
for (const [name, each] of Object.entries(rows)) {
  await writeFile(path.join(folder, `${name}.jsonl`), each.map((row) => `${JSON.stringify(row)}\n`).join(""));
}
