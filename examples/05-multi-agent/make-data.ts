/**
 * Writes data/demos.jsonl, the same rows each time: answers of a reader and a writer. The reader's operator and order of numbers
 * are random, so they teach the form, and nothing about which operation a story needs. The problems are those of
 * examples/03-math-tools.
 *
 *     node examples/05-multi-agent/make-data.ts [FOLDER]
 */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Random, scriptArguments } from "@hone/core";
import { OPERATORS, tellProblem } from "../03-math-tools/stories.ts";

const READERS = 1_500;
const WRITERS = 500;

const { positionals } = scriptArguments(process, {
  usage:
    "node examples/05-multi-agent/make-data.ts [FOLDER]\n\nWrites the rows of this example to FOLDER (data, beside this file).",
  takesMore: true,
});
const [folder = path.join(import.meta.dirname, "data")] = positionals;
const random = new Random(11);

function readerRow() {
  const { question, numbers } = tellProblem(random);
  const [high, low] = numbers;
  const [a, b] = random.pick([
    [high, low],
    [low, high],
  ] as const);
  return { prompt: question, response: ` ${a} ${random.pick(OPERATORS)} ${b}` };
}

function writerRow() {
  const result = random.nextInt(900);
  return { prompt: String(result), response: `#### ${result}` };
}

const rows = [...Array.from({ length: READERS }, readerRow), ...Array.from({ length: WRITERS }, writerRow)];
await mkdir(folder, { recursive: true });
await writeFile(path.join(folder, "demos.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
