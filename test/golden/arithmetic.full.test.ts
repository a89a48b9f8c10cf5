import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { parseRunFile } from "@hone/config";
import { MODEL_VARIABLE, temporaryFolder } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { weightDigests } from "../support/inspect/weights.ts";
import { REPOSITORY, startStack } from "../support/stack.ts";
import { compareWithRecord } from "./weights.ts";

/* Runs 3 steps of the second example with SmolLM2-135M-Instruct. Its evaluations are shortened, as they do not affect weights. */

const EXAMPLE = path.join("examples", "02-arithmetic");
const STEPS = 3;
const EVAL_TASKS = 1;
const DEADLINE_MS = 1_800_000;
const model = process.env[MODEL_VARIABLE];

test("3 steps of the second example end with the recorded weights", {
  skip: model === undefined && `not tested: ${MODEL_VARIABLE} must name a folder with SmolLM2-135M-Instruct`,
}, async (context) => {
  await using folder = await temporaryFolder("golden");
  const files = path.join(folder.path, EXAMPLE);
  await mkdir(files, { recursive: true });
  await cp(path.join(REPOSITORY, EXAMPLE, "train.jsonl"), path.join(files, "train.jsonl"));
  const heldOut = (await readFile(path.join(REPOSITORY, EXAMPLE, "eval.jsonl"), "utf8")).split("\n");
  await writeFile(path.join(files, "eval.jsonl"), `${heldOut.slice(0, EVAL_TASKS).join("\n")}\n`);
  const run = parseRunFile(await readFile(path.join(REPOSITORY, EXAMPLE, "run.yaml"), "utf8"));

  await using stack = await startStack({
    env: { HONE_FILES: folder.path, HONE_MODEL_FOLDERS: path.dirname(model!) },
  });
  const cutShort = {
    ...run,
    name: "golden-arithmetic",
    model: { path: model! },
    trainer: { ...run.trainer, steps: STEPS, eval: { ...run.trainer.eval, every: 0 } },
  };
  const { runId } = await runToEnd(stack, cutShort, { deadlineMs: DEADLINE_MS });
  compareWithRecord(context, "second example", await weightDigests(stack, runId));
});
