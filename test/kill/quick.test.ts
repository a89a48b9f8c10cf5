import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENTS, QUICK_CASES, VICTIMS } from "./moments.ts";

/* SIGKILL of each process once, at varied moments: the run goes on by itself, and ends as an undisturbed one ends. */

describe("a run goes on as if nothing had happened", () => {
  let harness: KillHarness;
  before(async () => {
    harness = await startKillHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("every process is killed at least once", () => {
    assert.deepEqual(new Set(QUICK_CASES.map(([victim]) => victim)), new Set(VICTIMS));
  });

  test("when nothing happens: the same file makes bitwise the same weights", () => harness.repeats());

  for (const [victim, moment] of QUICK_CASES) {
    test(`when ${victim} is killed: ${MOMENTS[moment].title}`, () => harness.survives(victim, moment));
  }

  test("and nothing is left behind, and the tracer has every rollout", () => harness.isTidy());
});
