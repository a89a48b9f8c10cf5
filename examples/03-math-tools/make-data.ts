/**
 * Writes this example's rows, the same ones each time:
 *
 *   data/train.jsonl   problems to train on
 *   data/test.jsonl    held-out problems, which are in no other file
 *   data/demos.jsonl   conversations that show how a call and an answer are written. Operator and order of the numbers
 *                      are random, so they teach the form, and nothing about which operation a story needs.
 *
 *     node examples/03-math-tools/make-data.ts [FOLDER]
 */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Random, scriptArguments } from "@hone/core";
import { OPERATORS, type Problem, resultOf, tellProblem } from "./stories.ts";

const TRAIN_ROWS = 1_000;
const TEST_ROWS = 200;
const DEMOS = 1_500;

const { positionals } = scriptArguments(process, {
  usage:
    "node examples/03-math-tools/make-data.ts [FOLDER]\n\nWrites the rows of this example to FOLDER (data, beside this file).",
  takesMore: true,
});
const [folder = path.join(import.meta.dirname, "data")] = positionals;
const random = new Random(3);
const told = new Set<string>();

/** A new problem, which was not used before. */
function newProblem(): Problem {
  for (;;) {
    const problem = tellProblem(random);
    if (told.has(problem.question)) continue;
    told.add(problem.question);
    return problem;
  }
}

/** The common row schema of agent data sets. */
function rowOf({ question, numbers, operator }: Problem, split: string, index: number) {
  return {
    data_source: "stories",
    prompt: [{ role: "user", content: question }],
    ability: "math",
    reward_model: { style: "rule", ground_truth: String(resultOf(numbers, operator)) },
    extra_info: { split, index },
  };
}

function demoOf({ question, numbers }: Problem) {
  const operator = random.pick(OPERATORS);
  const [high, low] = numbers;
  const [a, b] = random.pick([
    [high, low],
    [low, high],
  ] as const);
  const call = { name: "calculator", arguments: { expression: ` ${a} ${operator} ${b}` } };
  return {
    messages: [
      // The chat template's description of the tools.
      { role: "system", content: "calculator" },
      { role: "user", content: question },
      { role: "assistant", content: `<tool_call>${spaced(call)}</tool_call>` },
      { role: "tool", content: String(resultOf([a, b], operator)) },
      { role: "assistant", content: `#### ${resultOf([a, b], operator)}` },
    ],
  };
}

/** JSON with a space after each colon and comma, as Python and chat templates write it. */
function spaced(value: object): string {
  return JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "');
}

async function write(name: string, rows: readonly object[]): Promise<void> {
  await writeFile(path.join(folder, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

await mkdir(folder, { recursive: true });
await write(
  "test.jsonl",
  Array.from({ length: TEST_ROWS }, (_, index) => rowOf(newProblem(), "test", index)),
);
await write(
  "train.jsonl",
  Array.from({ length: TRAIN_ROWS }, (_, index) => rowOf(newProblem(), "train", index)),
);
await write(
  "demos.jsonl",
  Array.from({ length: DEMOS }, () => demoOf(newProblem())),
);
