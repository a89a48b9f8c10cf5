import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { FolderRefusedError } from "../errors.ts";
import { RunReporter } from "./run-reporter.ts";
import { NO_WAIT, RunPhase } from "./run-status.ts";
import { diskWait, WaitOwner } from "./wait.ts";

test("a wait for a folder belongs to the trainer, and to the user once the disk is full; both name the folder", async () => {
  const stop = new AbortController();
  const reporter = new RunReporter(
    {
      runId: "run-1",
      phase: RunPhase.commit,
      version: 1,
      location: "",
      digest: "",
      epoch: 1,
      totalSteps: 2,
      ...NO_WAIT,
      configJson: "{}",
      oldestVersion: 0,
      tokenizerDigest: "",
      resumption: 0,
      quantization: "none",
    },
    {
      board: { publish: async () => true },
      events: { publish: async () => undefined },
      logger: silentLogger(),
      signal: stop.signal,
      onOwnershipLost: (error) => assert.fail(error),
    },
  );
  const room = Promise.withResolvers<void>();
  const owners: string[] = [];
  const written = reporter.untilAvailable(diskWait("runs/run-1/state/2-1"), async () => {
    owners.push(reporter.status.waitingOwner);
    assert.match(reporter.status.waitingFor, /runs\/run-1\/state\/2-1/);
    if (owners.length === 1) throw new FolderRefusedError("/hone/runs/run-1/state/2-1", "ENOSPC");
    await room.promise;
  });
  await eventually("the second try", () => owners.length === 2);
  assert.match(reporter.status.waitingFor, /state\/2-1 cannot be used now \(ENOSPC\); free some room/);
  room.resolve();
  await written;
  assert.deepEqual(owners, [WaitOwner.trainer, WaitOwner.you]);
  assert.equal(reporter.status.waitingFor, "");
  stop.abort();
  await reporter.settle();
});
