import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENTS, QUICK_CASES, VICTIMS } from "./moments.ts";

/* Kills each process with SIGKILL at some moment: the run must continue by itself and end as an undisturbed run does. */

describe("a run ends as an undisturbed run does", () => {
  let harness: KillHarness;
  before(async () => {
    harness = await startKillHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("every process is killed at least once", () => {
    assert.deepEqual(new Set(QUICK_CASES.map(([victim]) => victim)), new Set(VICTIMS));
  });

  test("when it is repeated without a kill", () => harness.repeats());

  for (const [victim, moment] of QUICK_CASES) {
    test(`when ${victim} is killed: ${MOMENTS[moment].title}`, () => harness.survives(victim, moment));
  }

  test("afterwards nothing is left to remove, and the tracer has every rollout", () => harness.isTidy());
});
