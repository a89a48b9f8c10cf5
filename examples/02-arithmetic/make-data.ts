/**
 * Writes the rows of this example: `node examples/02-arithmetic/make-data.ts`.
 *
 * All sums of two numbers up to 30, in a shuffled order: 600 to train on, 200 held out. Each prompt begins with two sums and
 * their results, so that a small model knows the required form.
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";

const TRAIN_ROWS = 600;
const EVAL_ROWS = 200;
const LARGEST = 30;
/** The sums that the prompts show; they are not used as tasks. */
const SHOWN: readonly Sum[] = [
  [4, 9],
  [17, 6],
];
/** Step width through all sums. It shares no factor with their number, so each sum is reached once. */
const STRIDE = 541;

type Sum = readonly [number, number];

const count = LARGEST * LARGEST;
const sums = Array.from({ length: count }, (_, index): Sum => {
  const place = (index * STRIDE) % count;
  return [Math.floor(place / LARGEST) + 1, (place % LARGEST) + 1];
}).filter(([a, b]) => !SHOWN.some((shown) => shown[0] === a && shown[1] === b));

await Promise.all([
  write("train.jsonl", sums.slice(0, TRAIN_ROWS)),
  write("eval.jsonl", sums.slice(TRAIN_ROWS, TRAIN_ROWS + EVAL_ROWS)),
]);

async function write(name: string, asked: readonly Sum[]): Promise<void> {
  const lines = asked.map((sum) => JSON.stringify(row(sum)));
  await writeFile(path.join(import.meta.dirname, name), `${lines.join("\n")}\n`);
}

function row(sum: Sum) {
  const shown = SHOWN.flatMap((each) => [question(each), { role: "assistant", content: result(each) }]);
  return {
    data_source: "sums",
    prompt: [...shown, question(sum)],
    reward_model: { style: "rule", ground_truth: result(sum) },
  };
}

function question([a, b]: Sum) {
  return { role: "user", content: `${a} + ${b} =` };
}

function result([a, b]: Sum): string {
  return String(a + b);
}
