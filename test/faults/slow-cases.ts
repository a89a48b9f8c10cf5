/** A service reads more slowly than others write. The others must wait for it, and nothing may be lost. */

import assert from "node:assert/strict";
import { delay } from "@hone/core";
import { StreamName } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import type { DisturbedService, FaultHarness } from "./fault-harness.ts";

/** A tenth of the bandwidth that a step's episodes use. */
const SLOW_BYTES_PER_SECOND = 60_000;
const PAUSE_MS = 1_500;
const PAUSES = 3;
/** Fewer jobs than a step has. */
const FEW_JOBS = 16;

/** Slows down what the bus sends to the service, from the second step to the third step's training. */
export function survivesTrickle(harness: FaultHarness, name: DisturbedService): Promise<void> {
  return harness.survives(`${name}-slow`, async (run) => {
    const { network } = harness.services[name];
    await run.reaches(RunPhase.ROLLOUT, 2);
    network.throttle(SLOW_BYTES_PER_SECOND);
    await run.reaches(RunPhase.TRAIN, 3);
    network.restore();
  });
}

/** Stops the service's process several times for a moment. */
export function survivesStandstills(harness: FaultHarness, name: DisturbedService): Promise<void> {
  return harness.survives(`${name}-stopped`, async (run) => {
    const service = harness.services[name];
    await run.reaches(RunPhase.ROLLOUT, 1);
    for (let i = 0; i < PAUSES; i++) {
      service.pause();
      await delay(PAUSE_MS);
      service.continue();
      await delay(PAUSE_MS);
    }
  });
}

/** Lets the stream of jobs hold only a part of a step, so that the trainer must publish jobs as earlier ones are done. */
export async function survivesFullQueue(harness: FaultHarness): Promise<void> {
  const { streams } = harness.stack.bus.manager;
  const { config } = await streams.info(StreamName.jobs);
  await streams.update(StreamName.jobs, { max_msgs_per_subject: FEW_JOBS });
  let most = 0;
  const watching = new AbortController();
  const watched = (async () => {
    while (!watching.signal.aborted) {
      most = Math.max(most, (await streams.info(StreamName.jobs)).state.messages);
      await delay(5);
    }
  })();
  try {
    await harness.survives("few-jobs", async (run) => run.ends());
  } finally {
    watching.abort();
    await watched;
    await streams.update(StreamName.jobs, { max_msgs_per_subject: config.max_msgs_per_subject });
  }
  assert.ok(most > 0 && most <= FEW_JOBS, `${most} jobs were in the queue at once`);
}
