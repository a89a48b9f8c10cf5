import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome, type Slot } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import type { RunReporter } from "../report/run-reporter.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import { compareGroups } from "./compare-groups.ts";
import type { GroupJudges } from "./group-judges.ts";

const JUDGES = [
  { kind: "environment" },
  { kind: "group", name: "rank", weight: 2, baseUrl: "http://127.0.0.1:1/v1", model: "m", rubric: "r" },
];

/** A rollout of the first step that can be recognised by its position in the stream. */
function rollout(task: number, index: number, outcome: Outcome = Outcome.completed): ScoredRollout {
  return {
    slot: { split: "train", step: 1, task, index },
    attempt: 1,
    outcome,
    scores: [{ judge: "environment", weight: 1, value: 0 }],
    samples: [],
    metrics: {},
    turnCount: 1,
    sequence: 100 * task + index,
    bytes: 1,
    resumption: 0,
    durationMs: 1,
    trace: {} as ScoredRollout["trace"],
  };
}

/** Returns what the judge was asked, and the resulting rollouts. */
async function compare(
  scored: ScoredRollout[],
  groupJudges: GroupJudges,
  judge: object[] = JUDGES,
  { partOf = () => "", ...changes }: { partOf?: (slot: Slot) => string; dataset?: object } = {},
) {
  const run = testRun({
    config: testConfig({ judge, rollout: { tasksPerStep: 2, groupSize: 3 }, ...changes }),
  });
  // The reporter's waiting is not tested here.
  const reporter = {
    untilAvailable: (_wait: unknown, work: (signal: AbortSignal) => Promise<unknown>) =>
      work(new AbortController().signal),
  } as unknown as RunReporter;
  return compareGroups({ run, reporter, groupJudges, logger: silentLogger() }, scored, partOf);
}

const rankValues = (scored: readonly ScoredRollout[]) =>
  scored.map(({ scores }) => scores.find(({ judge }) => judge === "rank")?.value);

describe("compareGroups()", () => {
  const group = (task: number) => [rollout(task, 0), rollout(task, 1), rollout(task, 2)];

  test("adds the scores of the group's judges to those that each rollout has", async () => {
    const asked: (readonly number[])[] = [];
    const groupJudges: GroupJudges = {
      compare: async ({ runId, sequences, judges }) => {
        assert.equal(runId, "test-1");
        assert.deepEqual(
          judges.map(({ name }) => name),
          ["rank"],
        );
        asked.push(sequences);
        return { kind: "scored", scores: sequences.map((value) => [{ judge: "rank", weight: 2, value }]) };
      },
    };
    const compared = await compare([...group(0), ...group(1)], groupJudges);
    assert.deepEqual(asked, [
      [0, 1, 2],
      [100, 101, 102],
    ]);
    assert.deepEqual(rankValues(compared), [0, 1, 2, 100, 101, 102]);
    assert.equal(compared[0]?.scores.length, 2);
  });

  test("compares only rollouts that count in the group, and asks no judge about a single one", async () => {
    const groupJudges: GroupJudges = {
      compare: async ({ sequences }) => ({
        kind: "scored",
        scores: sequences.map((value) => [{ judge: "rank", weight: 2, value }]),
      }),
    };
    const mixed = [rollout(0, 0), rollout(0, 1, Outcome.infraFailed), rollout(0, 2, Outcome.truncated)];
    const alone = [rollout(1, 0, Outcome.stale), rollout(1, 1), rollout(1, 2, Outcome.cancelled)];
    const compared = await compare([...mixed, ...alone], groupJudges);
    assert.deepEqual(rankValues(compared), [0, undefined, 2, undefined, 0.5, undefined]);
  });

  test("marks a group that cannot be compared as infra_failed, and no other group", async () => {
    const groupJudges: GroupJudges = {
      compare: async ({ sequences }) =>
        sequences[0] === 0
          ? { kind: "failed", reason: "no idea" }
          : { kind: "scored", scores: sequences.map(() => [{ judge: "rank", weight: 2, value: 1 }]) },
    };
    const compared = await compare([...group(0), ...group(1)], groupJudges);
    assert.deepEqual(
      compared.map(({ outcome }) => outcome),
      [...new Array(3).fill(Outcome.infraFailed), ...new Array(3).fill(Outcome.completed)],
    );
  });

  test("asks the judges of a part of a mix about the groups of that part alone", async () => {
    const tasks = { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 9 } };
    const ranks = { ...JUDGES[1], name: "own" };
    const parts = [
      { name: "plain", tasks, groups: 1 },
      { name: "ranked", tasks, groups: 1, judge: [{ kind: "environment" }, ranks] },
    ];
    const asked: unknown[] = [];
    const groupJudges: GroupJudges = {
      compare: async ({ sequences, judges }) => {
        asked.push([sequences, judges.map(({ name }) => name)]);
        return { kind: "scored", scores: sequences.map((value) => [{ judge: "own", weight: 2, value }]) };
      },
    };
    const compared = await compare([...group(0), ...group(1)], groupJudges, [{ kind: "environment" }], {
      dataset: { train: { source: "mix", parts } },
      partOf: ({ task }) => parts[task]!.name,
    });
    assert.deepEqual(asked, [[[100, 101, 102], ["own"]]]);
    assert.deepEqual(
      compared.map(({ scores }) => scores.length),
      [1, 1, 1, 2, 2, 2],
    );
  });

  test("changes nothing in a run without a group judge", async () => {
    const groupJudges: GroupJudges = { compare: () => Promise.reject(new Error("must not be asked")) };
    const scored = group(0);
    assert.equal(await compare(scored, groupJudges, [{ kind: "environment" }]), scored);
  });
});
