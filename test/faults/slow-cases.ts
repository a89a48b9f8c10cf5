/** Somebody reads more slowly than the others write: they wait for it, and nothing is lost. */

import assert from "node:assert/strict";
import { delay } from "@hone/core";
import { StreamName } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import type { DisturbedService, FaultHarness } from "./fault-harness.ts";

/** A tenth of what a step's episodes would like. */
const SLOW_BYTES_PER_SECOND = 60_000;
const PAUSE_MS = 1_500;
const PAUSES = 3;
/** Less than a step has of them. */
const FEW_JOBS = 16;

/** What the bus sends to it trickles, from the second step to the end. */
export function survivesTrickle(harness: FaultHarness, name: DisturbedService): Promise<void> {
  return harness.survives(`${name}-slow`, async (run) => {
    const { network } = harness.services[name];
    await run.reaches(RunPhase.ROLLOUT, 2);
    network.throttle(SLOW_BYTES_PER_SECOND);
    await run.reaches(RunPhase.TRAIN, 3);
    network.restore();
  });
}

/** Its process stands still again and again. */
export function survivesStandstills(harness: FaultHarness, name: DisturbedService): Promise<void> {
  return harness.survives(`${name}-stopped`, async (run) => {
    const service = harness.services[name];
    await run.reaches(RunPhase.ROLLOUT, 1);
    for (let i = 0; i < PAUSES; i++) {
      service.pause();
      await delay(PAUSE_MS);
      service.goOn();
      await delay(PAUSE_MS);
    }
  });
}

/** The stream of jobs is full long before a step's jobs are in it: the trainer hands them out as they are done. */
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
