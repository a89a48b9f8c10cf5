import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENT_NAMES, MOMENTS, VICTIMS } from "./moments.ts";

/* Every victim at every moment. HONE_TEST_KILL=judge,trainer or =state-renamed chooses a part: names of either. */

/** A supervisor gives up what ends ten times after short lives: so many moments share a stack, each victim dies once at each. */
const MOMENTS_PER_STACK = 4;

const chosen = (process.env.HONE_TEST_KILL ?? "").split(",").filter((name) => name !== "");
const unknown = chosen.filter((name) => ![...VICTIMS, ...MOMENT_NAMES].some((each) => each === name));
if (unknown.length > 0) {
  throw new Error(
    `Cannot choose a part of the kill matrix as HONE_TEST_KILL must name victims or moments: current value is ${unknown.join(", ")}`,
  );
}
const victims = chosenOf(VICTIMS);
const moments = chosenOf(MOMENT_NAMES);

for (let begin = 0; begin < moments.length; begin += MOMENTS_PER_STACK) {
  const together = moments.slice(begin, begin + MOMENTS_PER_STACK);
  describe(`a run goes on as if nothing had happened: ${together.join(", ")}`, () => {
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
    test("and nothing is left behind, and the tracer has every rollout", () => harness.isTidy());
  });
}

/** Those that are named, or all where none is. */
function chosenOf<Name extends string>(all: readonly Name[]): readonly Name[] {
  const named = all.filter((name) => chosen.includes(name));
  return named.length > 0 ? named : all;
}
