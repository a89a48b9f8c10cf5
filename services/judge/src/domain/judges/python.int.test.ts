import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PythonSandbox } from "@hone/sandbox";
import { JudgeError } from "../../errors.ts";
import { answered, judgementOf, judgeParts } from "../testing-episodes.ts";

const TESTS = JSON.stringify([
  "assert add(2, 3) == 5",
  "assert add(-1, 1) == 0",
  "assert add('a', 'b') == 'ab'",
]);
const RIGHT = "```python\ndef add(a, b):\n    return a + b\n```";

describe("the judge python", { timeout: 180_000 }, () => {
  const sandbox = new PythonSandbox({ maxProcesses: 1 });
  after(() => sandbox.close());

  const judge = (answer: string, truth: string, more: object = {}) =>
    judgementOf({ kind: "python", ...more }, answered(answer, truth), judgeParts({ sandbox }));

  test("code that passes every test is worth 1, in a block or bare", async () => {
    assert.equal((await judge(`Here:\n${RIGHT}\nDone.`, TESTS)).value, 1);
    assert.equal((await judge("def add(a, b): return a + b", "assert add(1, 1) == 2")).value, 1);
  });

  test("code that fails a test is worth 0, or the share that it passes", async () => {
    const wrong = "```python\ndef add(a, b):\n    return a + b if isinstance(a, int) else a\n```";
    assert.equal((await judge(wrong, TESTS)).value, 0);
    assert.equal((await judge(wrong, TESTS, { score: "share" })).value, 2 / 3);
  });

  test("code that ends itself or its process before the tests, prints what they print, or never ends passes none", async () => {
    for (const code of [
      "import sys\nsys.exit(0)",
      "'passed'\nraise SystemExit",
      "print('passed')",
      "while True: pass",
      "import os\nos._exit(0)",
      "import os\nos.abort()",
    ]) {
      assert.equal((await judge(code, "assert add(1, 1) == 2", { timeMs: 3_000 })).value, 0, code);
    }
  });

  test("a judge without a sandbox cannot be made", () =>
    assert.rejects(judgementOf({ kind: "python" }, answered(RIGHT, TESTS)), JudgeError));
});
