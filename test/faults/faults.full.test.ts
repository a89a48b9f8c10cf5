import { after, before, describe, test } from "node:test";
import { survivesClockJumps } from "./clock-cases.ts";
import { DISTURBED, type FaultHarness, startFaultHarness } from "./fault-harness.ts";
import { survivesBlackHole, survivesResets } from "./network-cases.ts";
import { survivesFullQueue, survivesStandstills, survivesTrickle } from "./slow-cases.ts";
import { survivesTakeover, TAKEOVER_MOMENTS, type TakeoverMoment, type Wake } from "./takeover-cases.ts";

/* The same as faults.test.ts for every service and moment, with faults that last a minute instead of twelve seconds. */

const LOSS_MS = 60_000;
const WAKES: readonly Wake[] = ["as soon as it is owned", "after the next commit"];

describe("a run ends as an undisturbed run does", () => {
  let harness: FaultHarness;
  before(async () => {
    harness = await startFaultHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  for (const name of Object.keys(TAKEOVER_MOMENTS) as TakeoverMoment[]) {
    for (const wake of WAKES) {
      test(`when its stopped trainer continues (${TAKEOVER_MOMENTS[name].title}) after another one took the run, ${wake}`, () =>
        survivesTakeover(harness, name, wake));
    }
  }

  for (const service of DISTURBED) {
    test(`when the clock of ${service} jumps by an hour, ahead and back`, () =>
      survivesClockJumps(harness, service));
    test(`when ${service} is stopped for a moment several times`, () =>
      survivesStandstills(harness, service));
    test(`when the connections of ${service} are reset for a minute`, () =>
      survivesResets(harness, service, LOSS_MS));
    test(`when ${service} loses the network to the bus for a minute`, () =>
      survivesBlackHole(harness, service, LOSS_MS));
  }

  test("when the queue of jobs holds only a part of a step", () => survivesFullQueue(harness));

  for (const service of ["judge", "agent-rollout", "trainer"] as const) {
    test(`when the bus can send to ${service} only slowly`, () => survivesTrickle(harness, service));
  }
});
