/**
 * Compares the losses of the workers with the numbers of verl and ROLL, in float64: value and gradient; on a GPU where
 * `HONE_TEST_TORCH_DEVICE` is cuda.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { before, describe, test } from "node:test";
import { LOSSES } from "@hone/rl";
import { LOSS_CASES, type LossAnswer } from "@hone/rl/testing";
import { torchPython } from "@hone/testing";

const { python, skip } = torchPython(process.env);
const TORCH = path.join(import.meta.dirname, "../../torch");
const TIMEOUT_MS = 600_000;

function run<T>(args: readonly string[], input: string): T {
  const ran = spawnSync(python, args, {
    cwd: TORCH,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    input,
    encoding: "utf8",
    timeout: TIMEOUT_MS,
    maxBuffer: 64 * 2 ** 20,
  });
  assert.equal(ran.status, 0, ran.stderr);
  return JSON.parse(ran.stdout) as T;
}

describe("losses of the workers", { skip, timeout: TIMEOUT_MS }, () => {
  let answers: readonly LossAnswer[];
  before(() => {
    answers = run(["-m", "tests.losses"], JSON.stringify(LOSS_CASES.map(({ task }) => task)));
  });

  for (const [hone, cases] of Map.groupBy(LOSS_CASES, (each) => each.hone)) {
    test(`${hone} has the golden values and gradients (${cases.length} cases)`, () => {
      for (const each of cases) each.assertAnswered(answers[LOSS_CASES.indexOf(each)]!);
    });
  }

  test("they are those of the embedded engine", () => {
    const program = "import json; from hone_fsdp.losses import LOSSES; print(json.dumps(sorted(LOSSES)))";
    const named = Object.keys(LOSSES).filter((name) => name !== "module");
    assert.deepEqual(run(["-c", program], ""), named.sort());
  });
});
