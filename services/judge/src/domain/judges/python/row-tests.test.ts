import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { JudgeError } from "../../../errors.ts";
import { isSameOutput } from "./grade-programs.ts";
import { rowTestsOf } from "./row-tests.ts";

const read = (truth: unknown, isAll = true) =>
  rowTestsOf(typeof truth === "string" ? truth : JSON.stringify(truth), isAll);

describe("rowTestsOf()", () => {
  test("reads a text, and each text of a list, as a test in Python", () => {
    assert.deepEqual(read("assert f(1) == 2"), { kind: "code", tests: [{ code: "assert f(1) == 2" }] });
    assert.deepEqual(read(["import math", "assert f(1)"]), {
      kind: "code",
      tests: [{ code: "import math\nassert f(1)" }],
    });
    assert.deepEqual(read(["assert f(1)", "assert f(2)"], false), {
      kind: "code",
      tests: [{ code: "assert f(1)" }, { code: "assert f(2)" }],
    });
    assert.deepEqual(read({ tests: ["assert sum(1)"], entry_point: "sum", in_place: true }, false), {
      kind: "code",
      tests: [{ code: "assert sum(1)", entry_point: "sum", in_place: true }],
    });
  });

  test("reads HumanEval's test and entry point", () =>
    assert.deepEqual(read({ task_id: "HumanEval/0", test: "def check(candidate): ...", entry_point: "f" }), {
      kind: "code",
      tests: [{ code: "def check(candidate): ...", entry_point: "f" }],
    }));

  test("reads inputs and outputs of programs in the forms of APPS and verl, CodeContests and LiveCodeBench", () => {
    const tests = [
      { input: "1 2\n3", output: "6" },
      { input: "", output: "0\n1" },
    ];
    const program = { kind: "programs", tests };
    assert.deepEqual(read({ inputs: ["1 2\n3", ""], outputs: ["6", "0\n1"] }), program);
    assert.deepEqual(
      read({ inputs: [["1 2", "3"], ""], outputs: ["6", ["0", "1"]], fn_name: null }),
      program,
    );
    assert.deepEqual(read({ input: ["1 2\n3", ""], output: ["6", "0\n1"] }), program);
    assert.deepEqual(read(tests.map((each) => ({ ...each, testtype: "stdin" }))), program);
  });

  test("reads arguments and values of a function in the forms of APPS and verl and of LiveCodeBench", () => {
    assert.deepEqual(
      read({
        fn_name: "add",
        inputs: [
          [1, 2],
          [["a"], "b"],
        ],
        outputs: [3, ["5"]],
      }),
      {
        kind: "code",
        tests: [
          { name: "add", args: [1, 2], expected: 3 },
          { name: "add", args: [["a"], "b"], expected: ["5"] },
        ],
      },
    );
    assert.deepEqual(read({ fn_name: "add", inputs: ['[1, 2]\n"x"'], outputs: ["[3]"] }), {
      kind: "code",
      tests: [{ name: "add", args: [[1, 2], "x"], expected: [3] }],
    });
  });

  test("refuses JSON that is in none of these forms", () => {
    for (const truth of [
      { inputs: ["1"], outputs: [] },
      { inputs: [1], outputs: ["1"] },
      { fn_name: "f", inputs: ["no json"], outputs: [1] },
      { input: "1", output: "2" },
      [],
      {},
    ]) {
      assert.throws(() => read(truth), JudgeError, JSON.stringify(truth));
    }
  });
});

test("isSameOutput() ignores spaces at the ends of lines and line breaks at the end, and nothing else", () => {
  for (const [printed, expected, isSame] of [
    ["1 2\n3\n", "1 2\n3", true],
    ["1 2  \r\n3\t\n\n\n", "1 2\n3", true],
    ["", "\n", true],
    ["1  2", "1 2", false],
    [" 1", "1", false],
    ["1\n\n2", "1\n2", false],
    ["1.0", "1", false],
    ["", "0", false],
  ] as const) {
    assert.equal(isSameOutput(printed, expected), isSame, JSON.stringify(printed));
  }
});
