import { after, before, describe, test } from "node:test";
import { delay } from "@hone/core";
import { RunPhase } from "@hone/proto-gen/run";
import { type FaultHarness, startFaultHarness } from "./fault-harness.ts";

/* A service loses the network to the bus for a while: the run says whom it waits for, and goes on by itself afterwards. */

const LOSS_MS = 12_000;

describe("a run goes on after the network was lost", () => {
  let harness: FaultHarness<"judge" | "trainer">;
  before(async () => {
    harness = await startFaultHarness({ disturbed: ["judge", "trainer"] });
  });
  after(() => harness?.[Symbol.asyncDispose]());

  test("between the judge and the bus, when what is sent vanishes", () =>
    harness.survives("judge-lost", async (run) => {
      const { network } = harness.services.judge;
      await run.reaches(RunPhase.ROLLOUT, 2);
      network.blackHole();
      const outage = delay(LOSS_MS);
      await run.tells("whom it waits for", ({ waitingOwner }) => waitingOwner === "judge");
      await outage;
      network.restore();
    }));

  test("between the trainer and the bus, when connections are reset", () =>
    harness.survives("trainer-reset", async (run) => {
      const { network } = harness.services.trainer;
      await run.reaches(RunPhase.ROLLOUT, 2);
      network.reset();
      await delay(LOSS_MS);
      network.restore();
    }));
});
