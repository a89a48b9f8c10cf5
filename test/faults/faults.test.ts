import { after, before, describe, test } from "node:test";
import { survivesClockJumps } from "./clock-cases.ts";
import { type FaultHarness, startFaultHarness } from "./fault-harness.ts";
import { survivesBlackHole, survivesResets } from "./network-cases.ts";
import { survivesTakeover } from "./takeover-cases.ts";

/* Faults that kill nobody: the run says what it waits for, goes on by itself, and ends as an undisturbed one ends. */

const LOSS_MS = 12_000;

describe("a run ends as an undisturbed one", () => {
  let harness: FaultHarness;
  before(async () => {
    harness = await startFaultHarness();
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("when the judge loses the network to the bus", () => survivesBlackHole(harness, "judge", LOSS_MS));

  test("when the connections of the trainer are reset", () => survivesResets(harness, "trainer", LOSS_MS));

  test("when the clock of the trainer jumps by an hour, ahead and back", () =>
    survivesClockJumps(harness, "trainer"));

  test("when its trainer wakes up between its files and its transaction, and another one has the run", () =>
    survivesTakeover(harness, "before-transaction", "as soon as it is owned"));

  test("when its trainer wakes up before it publishes its version, and another one is further", () =>
    survivesTakeover(harness, "committed", "after the next commit"));
});
