import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { SAMPLING_MOMENTS } from "./moments.ts";

/* Kills processes while a run plays more tasks than its first batch: it must play and train the same groups again. */

describe("a run with dynamic sampling ends as an undisturbed run does", () => {
  let harness: KillHarness;
  before(async () => {
    harness = await startKillHarness({ run: { dynamicSampling: { metric: "reward", maxBatches: 10 } } });
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("its steps train as many groups as are asked for, and play more", async () => {
    const rows = await harness.stack.sql<{ metrics: Record<string, number> }[]>`
      select metrics from trainer.steps where version > 0 order by version`;
    assert.deepEqual(
      rows.map(({ metrics }) => metrics["groups/used"]),
      [8, 8, 8],
    );
    assert.ok(rows[1]!.metrics["sampling/batches"]! > 1, JSON.stringify(rows[1]!.metrics));
  });

  test("when it is repeated without a kill", () => harness.repeats());

  for (const victim of ["trainer", "judge", "nats-server", "postgres"] as const) {
    test(`when ${victim} is killed: ${SAMPLING_MOMENTS["second-batch"].title}`, () =>
      harness.survives(victim, "second-batch"));
  }

  test("when trainer is killed between the state's files and the commit", () =>
    harness.survives("trainer", "state-renamed"));
});
