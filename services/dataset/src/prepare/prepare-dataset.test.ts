import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { problemOfRow } from "../domain/check-rows.ts";
import { SourceError } from "../errors.ts";
import { filesToPrepare, prepareDataset } from "./prepare-dataset.ts";

/* The layouts are those of the public data sets; the questions are made up. */

const SUMS = [
  { question: "Ann has 2 apples and buys 3. How many?", answer: "2 + 3 = <<2+3=5>>5\n#### 5" },
  { question: "A car costs 1,200. Two cost?", answer: "2 * 1200 = 2,400\n#### 2,400" },
];
const MATHS = [
  {
    problem: "What is $\\frac12 + \\frac12$?",
    level: "Level 1",
    type: "Algebra",
    solution: "It is $\\boxed{1}$.",
  },
  {
    problem: "Halve $x$.",
    level: "Level 2",
    type: "Algebra",
    solution: "So $\\boxed{\\frac{x}{2}}$.",
  },
];

describe("prepareDataset()", () => {
  let folder: TemporaryFolder;
  beforeEach(async () => {
    folder = await temporaryFolder("prepare");
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  const put = async (name: string, content: string | Uint8Array) => {
    const file = path.join(folder.path, "from", name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const parquetOf = (records: readonly Readonly<Record<string, string>>[]) =>
    new Uint8Array(
      parquetWriteBuffer({
        columnData: Object.keys(records[0] ?? {}).map((name) => ({
          name,
          data: records.map((record) => record[name]!),
          type: "STRING",
        })),
      }),
    );
  const prepare = (name: "gsm8k" | "math", more: { instruction?: string; agentName?: string } = {}) =>
    prepareDataset({ name, from: path.join(folder.path, "from"), to: path.join(folder.path, "to"), ...more });
  const written = async (split: string) =>
    (await readFile(path.join(folder.path, "to", `${split}.jsonl`), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, never>);

  test("gsm8k is read as the hub has it, in Parquet with a folder for each configuration", async () => {
    await put("main/train-00000-of-00001.parquet", parquetOf(SUMS));
    await put("main/test-00000-of-00001.parquet", parquetOf(SUMS.slice(0, 1)));
    await put("socratic/train-00000-of-00001.parquet", parquetOf([{ question: "no", answer: "#### 0" }]));
    const splits = await prepare("gsm8k");
    assert.deepEqual(
      splits.map(({ split, rows, leftOut }) => [split, rows, leftOut]),
      [
        ["train", 2, 0],
        ["test", 1, 0],
      ],
    );
    const rows = await written("train");
    assert.deepEqual(rows[1], {
      data_source: "openai/gsm8k",
      prompt: [
        {
          role: "user",
          content: `${SUMS[1]!.question} Let's think step by step and output the final answer after "####".`,
        },
      ],
      ability: "math",
      reward_model: { style: "rule", ground_truth: "2400" },
      extra_info: { split: "train", index: 1, answer: SUMS[1]!.answer, question: SUMS[1]!.question },
    });
    for (const row of rows) assert.equal(problemOfRow(row, { groundTruthFor: undefined }), undefined);
  });

  test("gsm8k is read from the JSON Lines of its authors, and their files of other kinds are ignored", async () => {
    const lines = (records: readonly object[]) =>
      records.map((record) => `${JSON.stringify(record)}\n`).join("");
    await put("grade_school_math/data/train.jsonl", lines([...SUMS, { question: "?", answer: "none" }]));
    await put("grade_school_math/data/train_socratic.jsonl", lines(SUMS));
    const splits = await prepare("gsm8k", { instruction: "Be brief.", agentName: "tool_agent" });
    assert.deepEqual(
      splits.map(({ split, rows, leftOut }) => [split, rows, leftOut]),
      [["train", 2, 1]],
    );
    const [row] = await written("train");
    assert.equal(row?.agent_name, "tool_agent");
    assert.match(JSON.stringify(row?.prompt), /How many\? Be brief\./);
  });

  test("math is read as its authors publish it, with one JSON file for each problem", async () => {
    for (const [index, record] of MATHS.entries()) {
      await put(`train/algebra/${index}.json`, JSON.stringify(record, null, 2));
    }
    await put("test/geometry/0.json", JSON.stringify(MATHS[0]));
    await prepare("math");
    assert.deepEqual(
      (await written("train")).map((row) => row.reward_model),
      [
        { style: "rule", ground_truth: "1" },
        { style: "rule", ground_truth: "\\frac{x}{2}" },
      ],
    );
    const [row] = await written("test");
    assert.deepEqual(row?.extra_info, { split: "test", index: 0, level: "Level 1", type: "Algebra" });
  });

  test("math is read as the hub has it, in Parquet", async () => {
    await put("data/train-00000-of-00001.parquet", parquetOf(MATHS));
    const [split] = await prepare("math");
    assert.equal(split?.rows, 2);
  });

  test("a folder that holds another data set is refused, and nothing is written", async () => {
    await put("train.jsonl", '{"text":"a"}\n');
    await assert.rejects(prepare("gsm8k"), /question and answer, but all 1 lack one/);
    await assert.rejects(
      prepareDataset({ name: "math", from: folder.path, to: path.join(folder.path, "to") }),
      SourceError,
    );
    assert.deepEqual(await readdir(path.join(folder.path, "to")), []);
  });

  test("from a repository with several configurations the files of both splits of one are taken", () => {
    const paths = ["README.md", "main/test-0.parquet", "main/train-0.parquet", "socratic/train-0.parquet"];
    assert.deepEqual(filesToPrepare("gsm8k", paths), ["main/train-0.parquet", "main/test-0.parquet"]);
    assert.throws(() => filesToPrepare("gsm8k", ["README.md"]), SourceError);
  });
});
