import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { slotKey } from "@hone/core";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { Death, newRoot, tenure } from "../../testing/memory-tenure.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import type { Job } from "./jobs.ts";

const STEPS = 4;
const DEADLINE_MS = 5_000;

interface Changes {
  /** `rollout.deadline` of the run file. */
  readonly deadline?: Record<string, unknown>;
  readonly maxStaleness?: number;
  /** How long an attempt takes if nothing ends it, milliseconds. */
  readonly tookMs: (job: Job) => number;
  /** Called before and after each effect; a throw is the death of the process, and another one takes the run over. */
  readonly point?: (name: string) => void;
}

/** A run of four steps of two tasks with two rollouts, to its end. @returns the deadlines of its jobs by slot, and its figures. */
async function runWith({ deadline, maxStaleness = 0, tookMs, point }: Changes) {
  await using root = await newRoot("rollout-deadlines");
  const config = testConfig({
    rollout: {
      tasksPerStep: 2,
      groupSize: 2,
      deadlineMs: DEADLINE_MS,
      onUniformFailure: "continue",
      ...(deadline && { deadline }),
    },
    trainer: { steps: STEPS, maxStaleness, optimizer: { kind: "adamw", learningRate: 0.1 } },
  });
  const world = new MemoryWorld(testRun({ config }));
  const deadlines = new Map<string, number | undefined>();
  const late = new Set<string>();
  if (point !== undefined) world.point = point;
  world.durationOf = (job) => {
    const key = slotKey(job.slot);
    const mostMs = job.deadlineMs ?? DEADLINE_MS;
    if (job.slot.split === "train") deadlines.set(key, job.deadlineMs);
    if (tookMs(job) > mostMs) late.add(key);
    return Math.min(tookMs(job), mostMs);
  };
  world.failureOf = (slot) => (late.has(slotKey(slot)) ? { outcome: "timed_out" } : undefined);
  while (world.ending === undefined) {
    await tenure(world, root.path).catch((error: unknown) => {
      if (!(error instanceof Death)) throw error;
    });
  }
  const steps = Array.from({ length: STEPS }, (_, i) => world.steps.get(i + 1)?.metrics ?? {});
  const bySlot = [...deadlines].sort(([a], [b]) => (a < b ? -1 : 1));
  const ofSteps = steps.map((metrics) => metrics["deadline/ms"]);
  return { bySlot, steps, ofSteps };
}

/** Attempts of step k take 100 k + 10 ms for each of its rollouts but the first. */
const growing = ({ slot }: Job) => 100 * slot.step + 10 * (2 * slot.task + slot.index);

describe("rollout.deadline", () => {
  test("is left out of jobs and figures where the run file does not have it", async () => {
    const { bySlot, steps } = await runWith({ tookMs: growing });
    assert.ok(bySlot.every(([, deadlineMs]) => deadlineMs === undefined));
    assert.ok(steps.every((metrics) => Object.keys(metrics).every((name) => !name.startsWith("deadline/"))));
  });

  test("is the factor times the quantile of the steps before, once enough attempts were seen", async () => {
    const { bySlot, ofSteps, steps } = await runWith({
      deadline: { quantile: 0.75, factor: 3, window: 8 },
      tookMs: growing,
    });
    // The third of four: 120, 220, 320 ms. Eight attempts are those of two steps.
    assert.deepEqual(ofSteps, [DEADLINE_MS, DEADLINE_MS, 3 * 220, 3 * 320]);
    for (const [slot, deadlineMs] of bySlot)
      assert.equal(deadlineMs, ofSteps[Number(slot.split(".")[1]) - 1]);
    assert.deepEqual(
      steps.map((metrics) => [
        metrics["deadline/seen"],
        metrics["deadline/quantile_ms"],
        metrics["deadline/ended"],
      ]),
      [120, 220, 320, 420].map((ms) => [4, ms, 0]),
    );
  });

  test("is never above deadlineMs, and never below the least value of deadlineMs", async () => {
    const long = await runWith({ deadline: { window: 1 }, tookMs: () => DEADLINE_MS - 1 });
    assert.deepEqual(long.ofSteps, [DEADLINE_MS, DEADLINE_MS, DEADLINE_MS, DEADLINE_MS]);
    const short = await runWith({ deadline: { window: 1 }, tookMs: () => 0.25 });
    assert.deepEqual(short.ofSteps, [DEADLINE_MS, 100, 100, 100]);
  });

  test("grows where it ends more attempts than the quantile leaves, and tells how many it ended", async () => {
    const { ofSteps, steps } = await runWith({
      deadline: { quantile: 0.9, factor: 2, window: 4 },
      tookMs: ({ slot }) => (slot.step === 1 ? 100 : 700),
    });
    assert.deepEqual(ofSteps, [DEADLINE_MS, 200, 400, 800]);
    assert.deepEqual(
      steps.map((metrics) => [metrics["deadline/ended"], metrics["outcome/timed_out"]]),
      [0, 4, 4, 0].map((count) => [count, count]),
    );
  });

  for (const maxStaleness of [0, 1]) {
    test(`is the same for the jobs that another owner of the run publishes (maxStaleness ${maxStaleness})`, async () => {
      const changes = { deadline: { quantile: 0.75, window: 4 }, maxStaleness, tookMs: growing };
      const undisturbed = await runWith(changes);
      assert.ok(new Set(undisturbed.ofSteps).size > 2);
      let count = 0;
      const point = (name: string) => {
        if (name === "after job" && ++count % 3 === 0) throw new Death(name);
      };
      const killed = await runWith({ ...changes, point });
      assert.ok(count > 4);
      assert.deepEqual(killed.bySlot, undisturbed.bySlot);
      assert.deepEqual(
        killed.steps,
        undisturbed.steps.map((metrics, i) => ({ ...metrics, ...timesOf(killed.steps[i]) })),
      );
    });
  }
});

/** The figures of a step that depend on the machine, or on what an earlier owner of the run has left to do. */
function timesOf(metrics: Readonly<Record<string, number>> = {}) {
  return Object.fromEntries(
    Object.entries(metrics).filter(([name]) =>
      /^(?:time\/|idle\/|groups\/ready$|rollouts\/waiting$)/.test(name),
    ),
  );
}
