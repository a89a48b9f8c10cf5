/**
 * Backup and restore of a run by the steps of docs/cluster.md: the run is paused, dumped and copied, everything else is
 * lost, and the run continues in an empty namespace. `npm run test:chart`.
 *
 * Needs pg_dump and pg_restore of the server's major version or newer, in PATH or in the folder HONE_TEST_PG_BIN.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { ControlReplySchema, RunPhase } from "@hone/proto-gen/run";
import { eventually, temporaryFolder } from "@hone/testing";
import postgres from "postgres";
import { lakeRun } from "../support/index.ts";
import {
  connectClient,
  endOf,
  followRun,
  publishAndFollow,
  SHORT_STEPS,
  stepsOf,
  trainedBy,
} from "./cluster/follow-run.ts";
import { type LocalCluster, startLocalCluster } from "./cluster/local-cluster.ts";
import { findHelm, render } from "./helm.ts";

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 120_000;
const WAIT = { deadlineMs: 120_000 };
const STEPS = 9;
const RUN = { name: "undisturbed", steps: STEPS, ...SHORT_STEPS };
/** The volumes of a backup, by the names of their claims. */
const CLAIMS = ["hone-state", "data-hone-nats-0"];
/** Components that create tables, which must start after the dump is restored. */
const LATER = ["trainer", "tracer"];

/** Major version of the embedded server, whose package has no client programs. */
const SERVER_MAJOR = 18;
const BIN = process.env.HONE_TEST_PG_BIN;
const program = (name: string) => (BIN === undefined ? name : path.join(BIN, name));

async function whyNot(): Promise<string | false> {
  const helm = await findHelm();
  if (helm.kind === "missing") return helm.why;
  const said = await run(program("pg_dump"), ["--version"], { timeout: COMMAND_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => "none",
  );
  const major = Number(/\) (\d+)/.exec(said)?.[1] ?? 0);
  return major >= SERVER_MAJOR
    ? false
    : `pg_dump is ${said}; version ${SERVER_MAJOR} or newer is needed, in PATH or in HONE_TEST_PG_BIN`;
}

const skip = await whyNot();
if (skip !== false) console.warn(`SKIPPED: backup and restore are not tested: ${skip}`);

describe("a run that was backed up", { skip, timeout: 3_000_000 }, () => {
  test("continues in an empty namespace and ends as an undisturbed run does", async () => {
    const helm = await findHelm();
    assert.ok(helm.kind === "found");
    // Secrets are part of the backup, so that the second install has the passwords of the first.
    const manifests = await render(helm.program, { profile: "cpu" });
    await using backup = await temporaryFolder("backup");
    const dump = path.join(backup.path, "hone.dump");

    const { runId, undisturbed } = await backUp();

    await using cluster = await startLocalCluster(manifests, {
      without: LATER,
      fillClaims: (claims) => copyClaims(backup.path, claims),
    });
    const restoring = ["--dbname", cluster.database.url, "--exit-on-error", dump];
    await run(program("pg_restore"), restoring, { timeout: COMMAND_TIMEOUT_MS });
    for (const component of LATER) await cluster.start(component);
    const bus = await connectClient(cluster);
    try {
      await control(bus, "resume", runId);
      const events = await followRun(cluster, bus, "kept");
      assert.equal(endOf(events)?.phase, RunPhase.COMPLETED, endOf(events)?.reason);
      assert.deepEqual(
        stepsOf(events),
        Array.from({ length: STEPS }, (_, i) => i + 1),
      );
      assert.deepEqual(await trainedBy(cluster, "kept"), undisturbed, "the same rollouts and the same bits");
      const another = await lakeRun({ ...RUN, name: "another", steps: 1 });
      const later = await publishAndFollow(cluster, bus, JSON.stringify(another));
      assert.equal(endOf(later)?.phase, RunPhase.COMPLETED, "a new request is a new run");
    } finally {
      await bus.close();
    }

    /** The first cluster, of which only the backup is left. */
    async function backUp() {
      await using cluster = await startLocalCluster(manifests);
      const bus = await connectClient(cluster);
      try {
        await publishAndFollow(cluster, bus, JSON.stringify(await lakeRun(RUN)));
        bus.connection.publish(
          "hone.v1.run.request",
          JSON.stringify(await lakeRun({ ...RUN, name: "kept" })),
        );
        const runId = await runInStep(cluster, "kept", 4);
        await control(bus, "pause", runId);
        await eventually(
          "the pause",
          async () => (await control(bus, "status", runId)) === RunPhase.PAUSED,
          WAIT,
        );
        const dumping = ["--dbname", cluster.database.url, "--format=custom", "--file", dump];
        await run(program("pg_dump"), dumping, { timeout: COMMAND_TIMEOUT_MS });
        await cluster.pods.get("nats")?.delete();
        await copyClaims(cluster.claims, backup.path);
        return { runId, undisturbed: await trainedBy(cluster, "undisturbed") };
      } finally {
        await bus.close();
      }
    }
  });
});

async function copyClaims(from: string, to: string): Promise<void> {
  for (const claim of CLAIMS) await cp(path.join(from, claim), path.join(to, claim), { recursive: true });
}

/** Sends `nats req hone.v1.run.<verb>.<run> ''`. @returns the phase in the answer. */
async function control(
  { connection }: Awaited<ReturnType<typeof connectClient>>,
  verb: string,
  runId: string,
): Promise<RunPhase | undefined> {
  // Right after a restore the trainer may still be opening the run.
  const answer = await connection.request(`hone.v1.run.${verb}.${runId}`, "", { timeout: 20_000 });
  const { error, state } = fromBinary(ControlReplySchema, answer.data);
  assert.equal(error, "", verb);
  return state?.phase;
}

/** Waits until a run has committed a step. @returns the run's id. */
async function runInStep(cluster: LocalCluster, name: string, step: number): Promise<string> {
  const sql = postgres(cluster.database.url, { max: 1 });
  try {
    return await eventually(
      `step ${step} of ${name}`,
      async () => {
        const [found] = await sql<{ run_id: string }[]>`
          select run_id from trainer.steps where run_id like ${`${name}-%`} and version >= ${step}`.catch(
          () => [],
        );
        return found?.run_id;
      },
      WAIT,
    );
  } finally {
    await sql.end({ timeout: 5 });
  }
}
