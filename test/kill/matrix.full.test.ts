import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENT_NAMES, MOMENTS, VICTIMS } from "./moments.ts";

/* Kills every victim at every moment. HONE_TEST_KILL chooses some by name, such as judge,trainer or state-renamed. */

/** A supervisor gives up a process that ends ten times soon after its start, so only this many moments share a stack. */
const MOMENTS_PER_STACK = 4;

const chosen = (process.env.HONE_TEST_KILL ?? "").split(",").filter((name) => name !== "");
const unknown = chosen.filter((name) => ![...VICTIMS, ...MOMENT_NAMES].some((each) => each === name));
if (unknown.length > 0) {
  throw new Error(
    `HONE_TEST_KILL names ${unknown.join(", ")}, which is no victim or moment of the kill matrix`,
  );
}
const victims = chosenOf(VICTIMS);
const moments = chosenOf(MOMENT_NAMES);

for (let begin = 0; begin < moments.length; begin += MOMENTS_PER_STACK) {
  const together = moments.slice(begin, begin + MOMENTS_PER_STACK);
  describe(`a run ends as an undisturbed run does: ${together.join(", ")}`, () => {
    let harness: KillHarness;
    before(async () => {
      harness = await startKillHarness();
    });
    after(() => harness?.[Symbol.asyncDispose]());

    for (const moment of together) {
      for (const victim of victims) {
        test(`when ${victim} is killed: ${MOMENTS[moment].title}`, () => harness.survives(victim, moment));
      }
    }
    test("afterwards nothing is left to remove, and the tracer has every rollout", () => harness.isTidy());
  });
}

/** The names in HONE_TEST_KILL, or all if it has none of these. */
function chosenOf<Name extends string>(all: readonly Name[]): readonly Name[] {
  const named = all.filter((name) => chosen.includes(name));
  return named.length > 0 ? named : all;
}
