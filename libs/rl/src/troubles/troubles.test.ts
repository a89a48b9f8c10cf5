import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { rolloutOf } from "../testing.ts";
import { reasonKey, reasonLine } from "./failure-reason.ts";
import { troublesOf, uniformFailureOf } from "./rollout-troubles.ts";

const HEAD = "command: its command ended with exit code 1, and said last:";
const traceback = (module: string, folder: string) =>
  `${HEAD}\nTraceback (most recent call last):\n  File "${folder}/guess.py", line 12, in <module>\n    import ${module}\nModuleNotFoundError: No module named '${module}'\n`;

describe("reasonLine()", () => {
  const cases: readonly (readonly [what: string, reason: string, line: string])[] = [
    ["Python", traceback("openai", "/work"), `${HEAD} ModuleNotFoundError: No module named 'openai'`],
    [
      "Node",
      `${HEAD}\nfile:///a/guess.ts:3\nthrow new Error("lost");\n      ^\n\nError: lost\n    at main (file:///a/guess.ts:3:7)\n\nNode.js v24.1.0\n`,
      `${HEAD} Error: lost`,
    ],
    [
      "Java",
      `${HEAD}\nException in thread "main" java.lang.IllegalStateException: lost\n\tat Main.main(Main.java:3)`,
      `${HEAD} Exception in thread "main" java.lang.IllegalStateException: lost`,
    ],
    [
      "Go",
      `${HEAD}\npanic: lost\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:4 +0x1d\nexit status 2`,
      `${HEAD} panic: lost`,
    ],
    [
      "a shell",
      `${HEAD}\nguess.sh: line 3: curl: command not found`,
      `${HEAD} guess.sh: line 3: curl: command not found`,
    ],
    ["one line", "a limit on its turns ended it", "a limit on its turns ended it"],
    ["nothing", " \n ", ""],
  ];
  for (const [what, reason, line] of cases) {
    test(`finds the most informative line: ${what}`, () => assert.equal(reasonLine(reason), line));
  }

  test("is bounded, and keeps the end, where programs say what stopped them", () => {
    const line = reasonLine(`begin ${"x".repeat(1_000_000)} the end`);
    assert.ok(line.length <= 400);
    assert.ok(line.startsWith("begin xxx") && line.endsWith(" the end"));
  });

  test("moves no cursor and hides nothing by what a program printed", () => {
    const line = reasonLine("\u001b[2J\u001b[1;31mred\u001b[0m\u0007\u0000 \u202Eevil\u009b31m");
    assert.doesNotMatch(line, /[\p{Cc}\p{Cf}]/u);
    assert.match(line, /^red evil/);
  });
});

describe("reasonKey()", () => {
  const same: readonly (readonly [string, string])[] = [
    ["cannot reach http://127.0.0.1:40123/v1", "cannot reach http://127.0.0.1:51234/v1"],
    ["connect ECONNREFUSED 127.0.0.1:3456", "connect ECONNREFUSED 127.0.0.1:80"],
    ["cannot open /tmp/hone-agent-AbCdEf/task.json", "cannot open /tmp/hone-agent-xYzuvw/task.json"],
    [
      "id 3f2c8e10-1111-4222-8333-444455556666 is unknown",
      "id 00000000-aaaa-4bbb-8ccc-ddddeeeeffff is unknown",
    ],
    ["object at 0x7f3a is gone", "object at 0x9bc1 is gone"],
    ["request req_8fA2kLmQ91zz failed at 12:03:11.2", "request req_Zz7Yx6Wv5Ut4 failed at 09:59:00.1"],
    [traceback("openai", "/tmp/a"), traceback("openai", "/tmp/a/longer/folder")],
  ];
  for (const [one, other] of same) {
    test(`takes no account of what differs in: ${reasonLine(one)}`, () =>
      assert.equal(reasonKey(one), reasonKey(other)));
  }

  test("distinguishes two reasons", () => {
    assert.notEqual(reasonKey(traceback("openai", "/a")), reasonKey(traceback("numpy", "/a")));
    assert.notEqual(reasonKey("cannot open /data/a.json"), reasonKey("cannot open /data/b.json"));
    assert.notEqual(reasonKey("it said 'left'"), reasonKey("it said 'right'"));
  });
});

const failed = (index: number, outcome: Outcome, reason: string) =>
  rolloutOf(0, index, 0, { outcome, reason });

describe("uniformFailureOf()", () => {
  const one = (index: number) => failed(index, Outcome.agentFailed, `lost after ${index} s`);

  test("finds one reason in all rollouts, in the words of the first", () => {
    const both = [one(0), failed(1, Outcome.infraFailed, "lost after 9 s")];
    assert.deepEqual(uniformFailureOf(both), {
      outcome: Outcome.agentFailed,
      count: 2,
      reason: "lost after 0 s",
      reasonCount: 2,
    });
  });

  test("finds none where one completed, was cut off, gave another reason, or there is none", () => {
    assert.equal(uniformFailureOf([]), undefined);
    assert.equal(uniformFailureOf([one(0), rolloutOf(0, 1, 0)]), undefined);
    assert.equal(uniformFailureOf([one(0), failed(1, Outcome.timedOut, "lost after 1 s")]), undefined);
    assert.equal(uniformFailureOf([one(0), failed(1, Outcome.agentFailed, "no such file")]), undefined);
  });
});

describe("troublesOf()", () => {
  test("says nothing where all is well", () => {
    const toolUses = [{ name: "search", calls: 3, failed: 2, error: "away" }];
    assert.equal(troublesOf([rolloutOf(0, 0, 1), rolloutOf(0, 1, 1, { toolUses })]), undefined);
  });

  test("counts outcomes, the most frequent first, each with its commonest reason", () => {
    const rollouts = [
      rolloutOf(0, 0, 1),
      failed(1, Outcome.truncated, "a limit on its turns ended it"),
      failed(2, Outcome.agentFailed, "no such file"),
      failed(3, Outcome.agentFailed, "lost after 3 s"),
      failed(4, Outcome.agentFailed, "lost after 4 s"),
    ];
    assert.deepEqual(troublesOf(rollouts), {
      rollouts: 5,
      outcomes: [
        { outcome: "agent_failed", count: 3, reason: "lost after 3 s", reasonCount: 2 },
        { outcome: "truncated", count: 1, reason: "a limit on its turns ended it", reasonCount: 1 },
      ],
      tools: [],
    });
  });

  test("names tools of which every call of every rollout failed", () => {
    const uses = (searchFailed: number) => [
      { name: "python", calls: 2, failed: 2, error: "no sandbox" },
      { name: "search", calls: 2, failed: searchFailed, error: "away" },
    ];
    const rollouts = [rolloutOf(0, 0, 1, { toolUses: uses(2) }), rolloutOf(0, 1, 1, { toolUses: uses(1) })];
    assert.deepEqual(troublesOf(rollouts)?.tools, [{ name: "python", calls: 4, error: "no sandbox" }]);
  });
});
