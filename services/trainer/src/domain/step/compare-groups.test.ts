import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
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

/** A rollout of the first step whose position in the stream tells which it is. */
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
    trace: {} as ScoredRollout["trace"],
  };
}

/** What the judge was asked, and the rollouts that came of it. */
async function compare(scored: ScoredRollout[], groupJudges: GroupJudges, judge: object[] = JUDGES) {
  const run = testRun({
    config: testConfig({ judge, rollout: { tasksPerStep: 2, groupSize: 3 } }),
  });
  // Waiting is the reporter's own affair.
  const reporter = {
    untilAvailable: (_wait: unknown, work: (signal: AbortSignal) => Promise<unknown>) =>
      work(new AbortController().signal),
  } as unknown as RunReporter;
  return compareGroups({ run, reporter, groupJudges, logger: silentLogger() }, scored);
}

const rankValues = (scored: readonly ScoredRollout[]) =>
  scored.map(({ scores }) => scores.find(({ judge }) => judge === "rank")?.value);

describe("compareGroups()", () => {
  const group = (task: number) => [rollout(task, 0), rollout(task, 1), rollout(task, 2)];

  test("adds to each rollout what its group's judges say of it, beside the scores that it has", async () => {
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

  test("leaves out of the comparison what is left out of the group, and asks nobody about one alone", async () => {
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

  test("a group that cannot be compared is infra_failed, the others are not", async () => {
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

  test("a run without such a judge is left as it is", async () => {
    const groupJudges: GroupJudges = { compare: () => Promise.reject(new Error("must not be asked")) };
    const scored = group(0);
    assert.equal(await compare(scored, groupJudges, [{ kind: "environment" }]), scored);
  });
});
