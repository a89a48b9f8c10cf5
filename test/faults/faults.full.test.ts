import { after, before, describe, test } from "node:test";
import { survivesClockJumps } from "./clock-cases.ts";
import { DISTURBED, type FaultHarness, startFaultHarness } from "./fault-harness.ts";
import { survivesBlackHole, survivesResets } from "./network-cases.ts";
import { survivesFullQueue, survivesStandstills, survivesTrickle } from "./slow-cases.ts";
import { survivesTakeover, TAKEOVER_MOMENTS, type TakeoverMoment, type Wake } from "./takeover-cases.ts";

/* The same as faults.test.ts, for every service and every moment, and for a minute where that takes twelve seconds. */

const LOSS_MS = 60_000;
const WAKES: readonly Wake[] = ["as soon as it is owned", "after the next commit"];

describe("a run ends as an undisturbed one", () => {
  let harness: FaultHarness;
  before(async () => {
    harness = await startFaultHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  for (const name of Object.keys(TAKEOVER_MOMENTS) as TakeoverMoment[]) {
    for (const wake of WAKES) {
      test(`when its trainer wakes up (${TAKEOVER_MOMENTS[name].title}) and another one has the run, ${wake}`, () =>
        survivesTakeover(harness, name, wake));
    }
  }

  for (const service of DISTURBED) {
    test(`when the clock of ${service} jumps by an hour, ahead and back`, () =>
      survivesClockJumps(harness, service));
    test(`when ${service} stands still again and again`, () => survivesStandstills(harness, service));
    test(`when the connections of ${service} are reset for a minute`, () =>
      survivesResets(harness, service, LOSS_MS));
    test(`when ${service} loses the network to the bus for a minute`, () =>
      survivesBlackHole(harness, service, LOSS_MS));
  }

  test("when the queue of jobs is full long before a step is in it", () => survivesFullQueue(harness));

  for (const service of ["judge", "agent-rollout", "trainer"] as const) {
    test(`when what the bus sends to ${service} trickles`, () => survivesTrickle(harness, service));
  }
});
