/** A service loses the network to the bus for a while. */

import { delay } from "@hone/core";
import { RunPhase, type RunState } from "@hone/proto-gen/run";
import type { DisturbedService, FaultHarness } from "./fault-harness.ts";

/** When a run cannot go on without the service. */
const NEEDED: Readonly<Record<DisturbedService, readonly [RunPhase, number]>> = {
  dataset: [RunPhase.TRAIN, 1],
  judge: [RunPhase.ROLLOUT, 2],
  "inference-gateway": [RunPhase.ROLLOUT, 2],
  "agent-rollout": [RunPhase.ROLLOUT, 2],
  trainer: [RunPhase.ROLLOUT, 2],
};

/** What is sent vanishes, and old connections are dead for ever: the run names whom it waits for, and goes on. */
export function survivesBlackHole(
  harness: FaultHarness,
  name: DisturbedService,
  lossMs: number,
): Promise<void> {
  return harness.survives(`${name}-lost`, async (run) => {
    const { network } = harness.services[name];
    await run.reaches(...NEEDED[name]);
    network.blackHole();
    const outage = delay(lossMs);
    // What the trainer itself waits for nobody hears while it is the one that is cut off.
    const isNamed = ({ waitingOwner }: RunState) => waitingOwner === name;
    if (name !== "trainer") await run.tells(`that it waits for ${name}`, isNamed);
    await outage;
    network.restore();
  });
}

/** Connections end at once, and so does each new one. */
export function survivesResets(harness: FaultHarness, name: DisturbedService, lossMs: number): Promise<void> {
  return harness.survives(`${name}-reset`, async (run) => {
    const { network } = harness.services[name];
    await run.reaches(...NEEDED[name]);
    network.reset();
    await delay(lossMs);
    network.restore();
  });
}
