import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, test } from "node:test";
import { delay } from "@hone/core";
import { PythonSandbox } from "@hone/sandbox";
import { JudgeError } from "../../errors.ts";
import { answered, judgementOf, judgeParts } from "../testing.ts";
import { TestRunners } from "./python/test-runners.ts";
import { casesIn, NUM_CASES, SOLVE_TESTS } from "./python/testing.ts";

const TESTS = JSON.stringify([
  "assert add(2, 3) == 5",
  "assert add(-1, 1) == 0",
  "assert add('a', 'b') == 'ab'",
]);
const RIGHT = "```python\ndef add(a, b):\n    return a + b\n```";

describe("the judge python", { timeout: 900_000 }, () => {
  const sandbox = new PythonSandbox({ maxProcesses: 1 });
  const testRunners = new TestRunners(new PythonSandbox({ maxProcesses: 1 }));
  const parts = judgeParts({ sandbox, testRunners });
  after(() => Promise.all([sandbox.close(), testRunners.close()]));

  const judge = (answer: string, truth: unknown, more: object = {}) => {
    const written = typeof truth === "string" ? truth : JSON.stringify(truth);
    return judgementOf({ kind: "python", ...more }, answered(answer, written), parts);
  };
  const scoreOf = async (...args: Parameters<typeof judge>) => (await judge(...args)).value;

  test("code that passes every test gets 1, in a fenced block or without one", async () => {
    assert.deepEqual(await judge(`Here:\n${RIGHT}\nDone.`, TESTS), { value: 1 });
    assert.equal(await scoreOf("def add(a, b): return a + b", "assert add(1, 1) == 2"), 1);
  });

  test("code that fails a test gets 0 or the share of passed tests, and the reason is the first failure", async () => {
    const wrong = "```python\ndef add(a, b):\n    return a + b if isinstance(a, int) else a\n```";
    assert.equal(await scoreOf(wrong, TESTS), 0);
    const { value, reason } = await judge(wrong, TESTS, { score: "share" });
    assert.equal(value, 2 / 3);
    assert.match(reason ?? "", /^test 3 of 3: AssertionError/);
  });

  test("a test in which the process ends or the time runs out does not affect other tests", async () => {
    const code =
      "import os\ndef add(a, b):\n    if a == -1: os._exit(0)\n    while isinstance(a, str): pass\n    return a + b";
    const more = [...JSON.parse(TESTS), "assert add(1, 1) == 2"];
    assert.equal(await scoreOf(code, more, { score: "share", timeMs: 3_000 }), 2 / 4);
  });

  test("endless loops, the end of the process and too much memory fail the test", async () => {
    for (const code of [
      "while True: pass",
      "def add(a, b):\n    while True: pass",
      "import os\nos._exit(0)",
      "def add(a, b):\n    xs = []\n    while True: xs.append(bytearray(10 ** 7))",
      "def add(a, b):\n    while True: yield 1",
    ]) {
      const truth = "assert list(add(1, 1)) == 2" as string;
      assert.equal(await scoreOf(code, code.includes("yield") ? truth : TESTS, { timeMs: 3_000 }), 0, code);
    }
  });

  // The others are in python.full.test.ts.
  for (const [name, code, tests] of casesIn("honest.py").slice(0, NUM_CASES)) {
    test(`passes: ${name}`, async () => {
      const { value, reason } = await judge(code, tests);
      assert.equal(value, 1, reason);
    });
  }

  test("a correct answer passes the tests that the attacks must fail", async () =>
    assert.equal(await scoreOf("def solve(xs):\n    return sorted(xs)", SOLVE_TESTS), 1));

  for (const [name, code, tests] of casesIn("attacks.py").slice(0, NUM_CASES)) {
    test(`fails: ${name}`, async () => {
      assert.equal(await scoreOf(code, tests, { timeMs: 5_000 }), 0);
    });
  }

  describe("programs", () => {
    const SUMS = { inputs: ["2\n1 2\n", "3\n1 2 3\n", "0\n\n"], outputs: ["3\n", "6", "0"] };

    for (const [how, code] of [
      ["input()", "n = int(input())\nprint(sum(map(int, input().split())))"],
      [
        "sys.stdin and the end of the program",
        "import sys\n_, *xs = sys.stdin.read().split()\nprint(sum(map(int, xs)), ' ')\nsys.exit()",
      ],
      ["its first file", "xs = open(0).read().split()[1:]\nprint(sum(int(x) for x in xs), end='')"],
      [
        "bytes",
        "import sys\nsys.stdin.buffer.readline()\nsys.stdout.buffer.write(b'%d\\n' % sum(map(int, sys.stdin.buffer.read().split())))",
      ],
      [
        "descriptors",
        "import io, os\ndata = io.BytesIO(os.read(0, os.fstat(0).st_size))\ndata.readline()\nos.write(1, str(sum(map(int, data.read().split()))).encode())",
      ],
      [
        "a main function and a thread",
        "import sys, threading\ndef main():\n    print('debug', file=sys.stderr)\n    input()\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    sys.setrecursionlimit(10 ** 6)\n    threading.stack_size(2 ** 26)\n    t = threading.Thread(target=main)\n    t.start()\n    t.join()",
      ],
    ] as const) {
      test(`passes: a program that reads by ${how}`, async () => {
        const { value, reason } = await judge(code, SUMS);
        assert.equal(value, 1, reason);
      });
    }

    test("each input is graded independently of the others", async () => {
      const code =
        "import os, sys\nn = int(input())\nif n == 2: os._exit(0)\nif n == 0:\n    while True: pass\nprint(sum(map(int, input().split())))";
      const { value, reason } = await judge(code, SUMS, { score: "share", timeMs: 3_000 });
      assert.equal(value, 1 / 3);
      assert.match(reason ?? "", /^test 1 of 3: its process ended/);
      assert.equal(await scoreOf(code, SUMS, { timeMs: 3_000 }), 0);
    });

    test("fails: programs that print something else or endlessly, search for outputs or forge replies", async () => {
      for (const code of [
        "print(7)",
        "import sys\nsys.stdout.write('3\\n')\nraise ValueError",
        "while True: print('x' * 10 ** 6)",
        "print(3)\nprint(4)",
        "import gc\nfor x in gc.get_objects():\n    if isinstance(x, dict) and 'output' in x: print(x['output'])",
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nhost = sys._getframe(1).f_globals['host_call']\nfor reply in ('{}', '{\"output\": \"3\", \"error\": null}', 'passed'): host(reply)",
      ]) {
        assert.equal(await scoreOf(code, SUMS, { timeMs: 3_000 }), 0, code);
      }
    });
  });

  test("functions are called with the row's arguments, including LeetCode's methods and functions that return tuples", async () => {
    const add = {
      fn_name: "add",
      inputs: [
        [1, 2],
        ["a", "b"],
      ],
      outputs: [3, ["ab"]],
    };
    assert.equal(await scoreOf(RIGHT, add), 1);
    assert.equal(await scoreOf("class Solution:\n    def add(self, a, b): return a + b", add), 1);
    assert.equal(await scoreOf("def add(a, b): return 3", add, { score: "share" }), 1 / 2);
    const pairs = { fn_name: "pairs", inputs: ["[1, 2]"], outputs: ["[[1, 2], [2, 1]]"] };
    assert.equal(await scoreOf("def pairs(xs): return [tuple(xs), tuple(xs[::-1])]", pairs), 1);
    const equal = "class E:\n    def __eq__(self, o): return True\ndef add(a, b): return E()";
    assert.equal(await scoreOf(equal, add), 0);
  });

  test("HumanEval's columns are read, and functions may change their arguments and return a value", async () => {
    const check = "def check(candidate):\n    assert candidate(1, 2) == 3";
    assert.equal(await scoreOf(RIGHT, { test: check, entry_point: "add" }), 1);
    assert.equal(await scoreOf("def add(a, b): return 4", { test: check, entry_point: "add" }), 0);
    const code = "def drop(xs, x):\n    while x in xs: xs.remove(x)\n    return len(xs)";
    const tests = "xs = [1, 2, 1]\nassert drop(xs, 1) == 1 and xs == [2]";
    assert.equal(await scoreOf(code, { tests, in_place: true }), 1);
    assert.equal(await scoreOf(code, { tests }), 0);
  });

  test("the judge fails if the row's tests are unusable, whatever the answer is", async () => {
    for (const [truth, why] of [
      ["assert add(1, 2) ==", /not Python/],
      ["assert True", /use nothing of the answer/],
      ["def check(candidate): assert candidate(1, 2) == 3", /entry_point/],
      [{ inputs: ["1"], outputs: [] }, /of one length/],
    ] as const) {
      await assert.rejects(
        judge(RIGHT, truth),
        (error: Error) => error instanceof JudgeError && why.test(error.message),
      );
    }
  });

  test("the judge fails if the sandbox is not available", async () => {
    const closed = new PythonSandbox({ maxProcesses: 1 });
    await closed.close();
    for (const broken of [
      { sandbox: closed, testRunners },
      { sandbox, testRunners: new TestRunners(closed) },
    ]) {
      await assert.rejects(
        judgementOf({ kind: "python" }, answered(RIGHT, TESTS), judgeParts(broken)),
        /closed/,
      );
    }
  });

  test("a grading is repeated if its processes are killed from outside", async () => {
    const slow =
      "import time\nbegin = time.time()\nwhile time.time() < begin + 3: pass\ndef add(a, b): return a + b";
    const grading = judge(slow, TESTS);
    await delay(4_000);
    const victims = childrenOf(process.pid);
    for (const pid of victims) process.kill(pid, "SIGKILL");
    assert.ok(victims.length > 0);
    assert.deepEqual(await grading, { value: 1 });
  });

  test("a judge without a sandbox cannot be made", () =>
    assert.rejects(judgementOf({ kind: "python" }, answered(RIGHT, TESTS)), JudgeError));
});

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
