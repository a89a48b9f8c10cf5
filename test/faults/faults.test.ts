import { after, before, describe, test } from "node:test";
import { survivesClockJumps } from "./clock-cases.ts";
import { type FaultHarness, startFaultHarness } from "./fault-harness.ts";
import { survivesBlackHole, survivesResets } from "./network-cases.ts";
import { survivesTakeover } from "./takeover-cases.ts";

/* Faults that kill no process: the run reports what it waits for, continues by itself, and ends as an undisturbed run does. */

const LOSS_MS = 12_000;

describe("a run ends as an undisturbed run does", () => {
  let harness: FaultHarness;
  before(async () => {
    harness = await startFaultHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("when the judge loses the network to the bus", () => survivesBlackHole(harness, "judge", LOSS_MS));

  test("when the connections of the trainer are reset", () => survivesResets(harness, "trainer", LOSS_MS));

  test("when the clock of the trainer jumps by an hour, ahead and back", () =>
    survivesClockJumps(harness, "trainer"));

  test("when its trainer is stopped between its files and its transaction until another one has the run", () =>
    survivesTakeover(harness, "before-transaction", "as soon as it is owned"));

  test("when its trainer is stopped before it publishes its version until another one has committed the next", () =>
    survivesTakeover(harness, "committed", "after the next commit"));
});
