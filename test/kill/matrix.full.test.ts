import { after, before, describe, test } from "node:test";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENT_NAMES, MOMENTS, VICTIMS } from "./moments.ts";

/* Every victim at every moment. HONE_TEST_KILL=judge,trainer or =state-renamed chooses a part: names of either. */

const chosen = (process.env.HONE_TEST_KILL ?? "").split(",").filter((name) => name !== "");
const isChosen = (name: string, all: readonly string[]) =>
  !chosen.some((each) => all.includes(each)) || chosen.includes(name);

for (const victim of VICTIMS.filter((name) => isChosen(name, VICTIMS))) {
  describe(`a run goes on as if nothing had happened when ${victim} is killed`, () => {
    let harness: KillHarness;
    before(async () => {
      harness = await startKillHarness();
    });
    after(() => harness?.[Symbol.asyncDispose]());

    for (const moment of MOMENT_NAMES.filter((name) => isChosen(name, MOMENT_NAMES))) {
      test(`${MOMENTS[moment].title}`, () => harness.survives(victim, moment));
    }
    test("and nothing is left behind, and the tracer has every rollout", () => harness.isTidy());
  });
}
