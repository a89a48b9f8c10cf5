/** A service loses the network to the bus for a while. */

import { delay } from "@hone/core";
import { RunPhase, type RunState } from "@hone/proto-gen/run";
import type { DisturbedService, FaultHarness } from "./fault-harness.ts";

/** The phase and step in which a run needs the service. */
const NEEDED: Readonly<Record<DisturbedService, readonly [RunPhase, number]>> = {
  dataset: [RunPhase.TRAIN, 1],
  judge: [RunPhase.ROLLOUT, 2],
  "inference-gateway": [RunPhase.ROLLOUT, 2],
  "agent-rollout": [RunPhase.ROLLOUT, 2],
  trainer: [RunPhase.ROLLOUT, 2],
};

/** Packets vanish and old connections never work again. The run must report which service it waits for, and then continue. */
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
    // A trainer that is cut off cannot publish what it waits for.
    const isNamed = ({ waitingOwner }: RunState) => waitingOwner === name;
    if (name !== "trainer") await run.showsState(`that it waits for ${name}`, isNamed);
    await outage;
    network.restore();
  });
}

/** Existing and new connections are reset. */
export function survivesResets(harness: FaultHarness, name: DisturbedService, lossMs: number): Promise<void> {
  return harness.survives(`${name}-reset`, async (run) => {
    const { network } = harness.services[name];
    await run.reaches(...NEEDED[name]);
    network.reset();
    await delay(lossMs);
    network.restore();
  });
}
