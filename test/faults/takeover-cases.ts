/**
 * Two trainers for one run: one is stopped at a critical moment, another takes over the run, and then the first continues.
 */

import assert from "node:assert/strict";
import { BucketName, openBucket } from "@hone/messaging";
import { RunStateSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { MOMENTS, type Moment, RUN } from "../kill/moments.ts";
import { type FaultHarness, LEASE_MS } from "./fault-harness.ts";
import { FaultyService } from "./faulty-service.ts";

const MOMENT_DEADLINE_MS = 60_000;
/** Enough for the lease and for the lock of a transaction that the first trainer left open (libs/storage). */
const TAKEOVER_DEADLINE_MS = 60_000;

function moment(title: string, pattern: string, stop: Moment["stop"] = "before", times = 1): Moment {
  return { title, service: "trainer", path: [{ pattern, times }], stop, isNow: () => true };
}

const RENAMED = { pattern: "^rename .*/state/\\.new-2-\\d+ ", times: 1 };
const lastCheckpoint = `^rename .*/checkpoints/\\.new-step-${RUN.steps}`;
const lastEvaluation = `^publish hone\\.v1\\.rollout\\.job\\.\\S+ id=\\S+/eval\\.${RUN.steps}\\.`;

/** Where the first trainer is stopped. */
export const TAKEOVER_MOMENTS = {
  "jobs-half-published": MOMENTS["jobs-half-published"],
  "state-written": MOMENTS["state-written"],
  "before-transaction": {
    ...moment("state renamed, its transaction not begun", ""),
    path: [RENAMED, { pattern: "^query begin", times: 1 }],
  },
  "inside-transaction": {
    ...MOMENTS["state-renamed"],
    title: "all rows written, the transaction not committed",
  },
  "commit-unanswered": MOMENTS["commit-unanswered"],
  committed: MOMENTS.committed,
  evaluation: moment("half of an evaluation's jobs published", lastEvaluation, "after", RUN.evalTasks),
  checkpoint: moment("a checkpoint written, not renamed", lastCheckpoint),
  end: moment(
    "all done, its end not published",
    "^publish \\$KV\\.RUN_STATE\\..*ended|^publish hone\\.v1\\.event\\.\\S+\\.ended ",
  ),
} as const satisfies Readonly<Record<string, Moment>>;
export type TakeoverMoment = keyof typeof TAKEOVER_MOMENTS;

/** When the first trainer continues. */
export type Wake = "as soon as it is owned" | "after the next commit";

export async function survivesTakeover(
  harness: FaultHarness,
  name: TakeoverMoment,
  wake: Wake,
): Promise<void> {
  const { stack, moments, services } = harness;
  const first = services.trainer;
  const run = `taken-${name}-${wake === "after the next commit" ? "late" : "early"}`;
  moments.arm(TAKEOVER_MOMENTS[name]);
  try {
    await harness.survives(run, async ({ runId, ends }) => {
      const meeting = await eventually(`the moment ${name}`, () => moments.meeting(), {
        deadlineMs: MOMENT_DEADLINE_MS,
      });
      assert.equal(meeting.pid, first.pid, "the first trainer has the run");
      const history = await followState(harness, runId);
      first.pause();
      moments.release(); // now only SIGSTOP holds the process
      const versionThen = (await rowOf(harness, runId)).version;
      await using second = await FaultyService.start(stack, "trainer", "trainer-1", {
        HONE_TRAINER_LEASE_MS: String(LEASE_MS),
      });
      const isTaken = async () => {
        const { owner, version, stage } = await rowOf(harness, runId);
        if (owner !== "trainer-1") return false;
        return wake === "as soon as it is owned" || stage !== "active" || version > versionThen;
      };
      await eventually("the second trainer to take the run", isTaken, { deadlineMs: TAKEOVER_DEADLINE_MS });
      first.continue();
      await ends();
      assert.ok(first.isAlive, "the first trainer has not ended");
      assert.equal((await rowOf(harness, runId)).owner, "trainer-1");
      await history.check();
      assert.equal(await second.end(), 0);
    });
  } finally {
    first.continue();
    moments.disarm();
  }
}

async function rowOf({ stack }: FaultHarness, runId: string) {
  const [row] = await stack.sql<{ owner: string; version: number | null; stage: string }[]>`
    select owner, version, stage from trainer.runs where run_id = ${runId}`;
  assert.ok(row !== undefined);
  return { ...row, version: row.version ?? -1 };
}

/** Follows RUN_STATE. @returns a check that the owner's epoch and the version never decreased. */
async function followState({ stack: { bus } }: FaultHarness, runId: string) {
  const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
  const stop = new AbortController();
  const seen: { epoch: number; version: number }[] = [];
  const following = (async () => {
    for await (const { key, value } of bucket.watch(stop.signal)) {
      if (key === runId && value !== undefined) {
        seen.push({ epoch: Number(value.ownerEpoch), version: value.version });
      }
    }
  })();
  return {
    check: async () => {
      const last = (await bucket.get(runId))?.value;
      await eventually("the last state to be seen", () => seen.at(-1)?.version === last?.version);
      stop.abort();
      await following;
      for (const [i, { epoch, version }] of seen.entries()) {
        const before = seen[i - 1] ?? { epoch: 0, version: 0 };
        assert.ok(
          epoch >= before.epoch && version >= before.version,
          `RUN_STATE went back: ${JSON.stringify(seen)}`,
        );
      }
      assert.ok(
        seen.some(({ epoch }) => epoch > 1),
        "the second owner published its state",
      );
    },
  };
}
