import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { algorithmSchema, valueLossSchema } from "@hone/rl";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENTS } from "./moments.ts";

/*
 * Kills processes while a run trains a critic: the critic must go on as it was. Its values are part of the advantages of the
 * next step, which the outcome compares. Every second version is written without the critic, so that steps are replayed.
 */

const { advantage } = algorithmSchema.parse({ advantage: { kind: "gae", lambda: 0.95 } });
const critic = { loss: valueLossSchema.parse({}), epochs: 1, warmupSteps: 1 };

describe("a run with a critic ends as an undisturbed run does", () => {
  let harness: KillHarness;
  before(async () => {
    harness = await startKillHarness({ run: { advantage, critic, stateEvery: 2 } });
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("the critic learns in every step, the policy from the second on", async () => {
    const rows = await harness.stack.sql<{ metrics: Record<string, number> }[]>`
      select metrics from trainer.steps where version > 0 order by version`;
    for (const { metrics } of rows) assert.ok(metrics["critic/loss"]! > 0, JSON.stringify(metrics));
    assert.deepEqual(
      rows.map(({ metrics }) => metrics.updates),
      [0, 4, 4],
    );
    const [, first, second] = harness.undisturbed.chain;
    assert.equal(first!.state_digest, harness.undisturbed.chain[0]!.state_digest);
    assert.notEqual(second!.state_digest, first!.state_digest);
  });

  test("when it is repeated without a kill", () => harness.repeats());

  for (const moment of ["optimizer-update", "state-renamed", "committed", "evaluation"] as const) {
    test(`when the trainer is killed: ${MOMENTS[moment].title}`, () => harness.survives("trainer", moment));
  }
  for (const victim of ["nats-server", "postgres"] as const) {
    test(`when ${victim} is killed: ${MOMENTS["state-written"].title}`, () =>
      harness.survives(victim, "state-written"));
  }
});
