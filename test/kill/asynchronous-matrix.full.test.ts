import { after, before, describe, test } from "node:test";
import { describeError } from "@hone/core";
import { brokenPromises } from "../support/inspect/asynchronous-run.ts";
import { assertRepeatable } from "../support/inspect/weights.ts";
import { type KillHarness, startKillHarness } from "./kill-case.ts";
import { MOMENTS, RUN, VICTIMS } from "./moments.ts";

/*
 * Kills each process while an asynchronous run trains a step and plays the rollouts of later ones, and in the publication of a
 * version. The order in which rollouts are complete differs from run to run, so the run is checked by what its rows must say, and
 * its kept rollouts are trained again to the same bytes.
 */

const MAX_STALENESS = 1;
const DEADLINE_MS = 300_000;

describe("an asynchronous run trains each group once and can be repeated", () => {
  let harness: KillHarness;
  before(async () => {
    harness = await startKillHarness({
      run: { maxStaleness: MAX_STALENESS, keepsRollouts: true, environment: { stepDelayMs: 5 } },
      async complaints(stack, { runId, file }) {
        const repeated = assertRepeatable(stack, file, runId, DEADLINE_MS);
        return [
          ...(await brokenPromises(stack, runId, { ...RUN, maxStaleness: MAX_STALENESS })),
          ...(await repeated.then(
            () => [],
            (error: unknown) => [`its replay: ${describeError(error)}`],
          )),
        ];
      },
    });
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("when nothing is killed", () => harness.repeats());

  for (const moment of ["optimizer-update", "published"] as const) {
    for (const victim of VICTIMS) {
      test(`when ${victim} is killed: ${MOMENTS[moment].title}`, () => harness.survives(victim, moment));
    }
  }

  test("and leaves nothing behind", () => harness.isTidy());
});
