/** Sets the clock of one service during a run. No lease or deadline may expire because of it, and nothing may wait for it. */

import assert from "node:assert/strict";
import { StreamName } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import type { DisturbedService, FaultHarness } from "./fault-harness.ts";

const HOUR_MS = 3_600_000;

/** Sets the clock an hour ahead in the first step, right in the second and an hour behind in the third, where a connection is lost. */
export async function survivesClockJumps(harness: FaultHarness, name: DisturbedService): Promise<void> {
  const { services, stack } = harness;
  const service = services[name];
  const redelivered = async () =>
    (await stack.bus.manager.consumers.info(StreamName.jobs, "agent-rollout")).num_redelivered;
  const before = await redelivered();
  let runId = "";
  try {
    await harness.survives(`${name}-clock`, async (run) => {
      ({ runId } = run);
      await run.reaches(RunPhase.ROLLOUT, 1);
      service.setClock(HOUR_MS);
      await run.reaches(RunPhase.ROLLOUT, 2);
      service.setClock(0);
      await run.reaches(RunPhase.ROLLOUT, 3);
      service.setClock(-HOUR_MS);
      await run.reaches(RunPhase.TRAIN, 3);
      service.network.reset();
      service.network.restore();
      await run.ends();
    });
  } finally {
    service.setClock(0);
  }
  assert.equal(await redelivered(), before, "a job was delivered again as if it were lost");
  const [row] = await stack.sql`select epoch from trainer.runs where run_id = ${runId}`;
  assert.equal(Number(row?.epoch), 1, "a lease was taken over as if it had expired");
}
