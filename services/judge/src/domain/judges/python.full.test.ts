import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PythonSandbox } from "@hone/sandbox";
import { answered, judgementOf, judgeParts } from "../testing.ts";
import { TestRunners } from "./python/test-runners.ts";
import { casesIn, NUM_CASES } from "./python/testing.ts";

describe("the judge python, case by case", { timeout: 1_800_000 }, () => {
  const sandbox = new PythonSandbox({ maxProcesses: 2 });
  const testRunners = new TestRunners(new PythonSandbox({ maxProcesses: 2 }));
  after(() => Promise.all([sandbox.close(), testRunners.close()]));

  const judge = (code: string, tests: string) =>
    judgementOf({ kind: "python" }, answered(code, tests), judgeParts({ sandbox, testRunners }));

  for (const [name, code, tests] of casesIn("honest.py").slice(NUM_CASES)) {
    test(`passes: ${name}`, async () => {
      const { value, reason } = await judge(code, tests);
      assert.equal(value, 1, reason);
    });
  }

  for (const [name, code, tests] of casesIn("attacks.py").slice(NUM_CASES)) {
    test(`fails: ${name}`, async () => {
      assert.equal((await judge(code, tests)).value, 0);
    });
  }
});
