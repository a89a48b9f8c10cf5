import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  type Bus,
  busAccounts,
  connectBus,
  ensureTopology,
  inboxPrefixOf,
  publishStored,
  StreamName,
  subjects,
  usersIn,
} from "@hone/messaging";
import { RunEventSchema, RunPhase } from "@hone/proto-gen/run";
import { eventually, startNats, temporaryFolder } from "@hone/testing";
import { factOf, type RunFact } from "../domain/run-event.ts";
import { findPython, runPython, skipWithout } from "../testing/python.ts";
import { sampleMetrics } from "../testing/sample-run.ts";
import { assertCurves, type Curves, expectedCurves } from "./testing/sink.suite.ts";

/* The sinks in Python on a real bus with the rights of the chart. They write without a server, and are killed in the middle. */

const PACKAGE = path.join(import.meta.dirname, "../../python");
const BACKENDS = ["wandb", "swanlab", "trackio"] as const;
const python = findPython("nats", ...BACKENDS);
const STEPS = 24;
const BEGAN_MS = Date.UTC(2026, 10, 20, 9);
const DEADLINE_MS = 180_000;

/** Prints all points that each system has of each run, as pairs of step and value, repeated ones included. */
const READ = `
import json, sys
from collections import defaultdict
from pathlib import Path
folder = Path(sys.argv[1])
found = defaultdict(lambda: defaultdict(list))

from wandb.proto.wandb_internal_pb2 import Record as WandbRecord
from hone_sinks.backends.leveldb_log import read_records
for file in sorted(folder.glob("wandb/wandb/offline-run-*/*.wandb")):
    for data in read_records(file):
        record = WandbRecord.FromString(data)
        if record.WhichOneof("record_type") == "history":
            row = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
            for name, value in row.items():
                if not name.startswith("_") and name != "training/global_step":
                    found["wandb " + file.stem][name].append([row["training/global_step"], value])

from swanlab.proto.swanlab.record.v1.record_pb2 import Record
from swanlab.sdk.internal.core_python.store import DataStoreError, DataStoreReader
for file in sorted(folder.glob("swanlab/run-*/*.swanlab")):
    reader = DataStoreReader()
    reader.open(file)
    try:
        while (data := reader.scan()) is not None:
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "scalar":
                scalar = record.scalar
                found["swanlab " + file.stem.replace("_", "-")][scalar.key].append([scalar.step, scalar.value.number])
    except (AssertionError, DataStoreError):
        pass  # the end that a kill left

from trackio.sqlite_storage import SQLiteStorage
for run in SQLiteStorage.get_runs("lakes"):
    for row in SQLiteStorage.get_logs("lakes", run):
        for name, value in row.items():
            if name not in ("step", "timestamp"):
                found["trackio run-" + run][name].append([row["step"], value])
print(json.dumps({system: {name: sorted(points) for name, points in curves.items()} for system, curves in found.items()}))
`;

describe("the sinks in Python", {
  timeout: 600_000,
  skip: skipWithout(python, "nats-py wandb swanlab trackio"),
}, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let nats: Awaited<ReturnType<typeof startNats>>;
  let bus: Bus;

  before(async () => {
    folder = await temporaryFolder("python-sinks");
    const accounts = busAccounts();
    const [first, ...others] = usersIn(accounts);
    if (first === undefined) assert.fail("no users");
    nats = await startNats({ users: [first, ...others], accounts });
    bus = await connectBus({
      url: nats.urlOf("trainer"),
      name: "trainer",
      user: "trainer",
      inboxPrefix: inboxPrefixOf("trainer"),
    });
    await ensureTopology(bus);
  });
  let sidecar: Sidecar | undefined;
  after(async () => {
    await sidecar?.kill();
    await bus?.close();
    await nats?.stop();
    await folder[Symbol.asyncDispose]();
  });

  const stateDir = () => path.join(folder.path, "state");
  const start = () => new Sidecar(nats.urlOf("sinks"), stateDir());
  const positionOf = async (backend: string): Promise<{ next: number; open: Record<string, string> }> => {
    const file = path.join(stateDir(), backend, "position.json");
    return JSON.parse(await readFile(file, "utf8").catch(() => '{"next":1,"open":{}}'));
  };
  /** Waits until a system was given all events. */
  const caughtUp = (backend: string, openRuns: number) =>
    eventually(
      `${backend} to have all events`,
      async () => {
        const { state } = await bus.manager.streams.info(StreamName.events);
        const { next, open } = await positionOf(backend);
        return next === state.last_seq + 1 && Object.keys(open).length === openRuns;
      },
      { deadlineMs: DEADLINE_MS },
    );
  const publish = async (run: string, event: Parameters<typeof publishEvent>[2], second: number) =>
    publishEvent(bus, run, event, BEGAN_MS + second * 1_000);
  const curvesOf = (): Readonly<Record<string, Curves>> =>
    runPython(python ?? "", READ, [stateDir()], {
      PYTHONPATH: PACKAGE,
      TRACKIO_DIR: path.join(stateDir(), "trackio"),
    }) as Record<string, Curves>;

  test("curves are whole and nothing is doubled, through kills in the middle of two runs", async () => {
    const facts: Record<string, RunFact[]> = { "lake-1": [], "sums-2": [] };
    const runs = Object.keys(facts);
    for (const run of runs) {
      const config = JSON.stringify({ name: run, trainer: { optimizer: { learningRate: 0.001 } } });
      await publish(run, { case: "accepted", value: { requestSequence: 1n, configJson: config } }, 0);
    }
    sidecar = start();
    for (let step = 1; step <= STEPS; step++) {
      for (const run of runs) {
        const metrics = sampleMetrics(step);
        const value = { step, totalSteps: STEPS, version: step, metrics };
        facts[run]?.push(await publish(run, { case: "stepCompleted", value }, step));
        if (step % 6 !== 0) continue;
        const scores = { version: step, mode: "greedy", episodes: 8, metrics: { success: step / STEPS } };
        facts[run]?.push(await publish(run, { case: "evaluated", value: scores }, step));
      }
      if (step % 9 !== 0) continue;
      await Promise.all(BACKENDS.map((backend) => caughtUp(backend, 2)));
      await sidecar.kill();
      sidecar = start();
    }
    // A trainer that took the run over reports its last step again.
    const last = { step: STEPS, totalSteps: STEPS, version: STEPS, metrics: sampleMetrics(STEPS) };
    await publish("lake-1", { case: "stepCompleted", value: last }, STEPS + 900);
    for (const run of runs)
      await publish(run, { case: "ended", value: { phase: RunPhase.COMPLETED } }, STEPS + 1);
    await Promise.all(BACKENDS.map((backend) => caughtUp(backend, 0)));
    await sidecar.stop();

    const found = curvesOf();
    for (const backend of BACKENDS) {
      for (const run of runs) {
        const name = `${backend} run-${run}-${BEGAN_MS.toString(36)}`;
        const curves = found[name] ?? assert.fail(`${name} is not among ${Object.keys(found)}`);
        assertCurves(curves, expectedCurves(facts[run] ?? []), 1e-6);
      }
    }
    assert.equal(Object.keys(found).length, BACKENDS.length * runs.length);
  });
});

async function publishEvent(
  bus: Bus,
  runId: string,
  kind: NonNullable<Parameters<typeof create<typeof RunEventSchema>>[1]>["kind"],
  timeMs: number,
): Promise<RunFact> {
  const event = create(RunEventSchema, {
    runId,
    timeMs: BigInt(timeMs),
    ...(kind !== undefined && { kind }),
  });
  const word = {
    stepCompleted: "step",
    evaluated: "evaluated",
    accepted: "accepted",
    ended: "ended",
  } as const;
  const { case: name = "" } = event.kind;
  const subject = subjects.event(runId, word[name as keyof typeof word]);
  await publishStored(bus, subject, RunEventSchema, event);
  return factOf(event, 0) ?? assert.fail("not a fact");
}

/** The program, with workers and what the packages start, in a group of its own. */
class Sidecar {
  readonly #child: ChildProcess;

  constructor(natsUrl: string, stateDir: string) {
    this.#child = spawn(python ?? "", ["-m", "hone_sinks"], {
      cwd: PACKAGE,
      detached: true,
      stdio: ["ignore", "ignore", process.env.HONE_TEST_OUTPUT === "1" ? "inherit" : "ignore"],
      env: {
        PATH: process.env.PATH,
        HOME: stateDir,
        PYTHONDONTWRITEBYTECODE: "1",
        HONE_NATS_URL: natsUrl,
        HONE_SINKS: BACKENDS.join(","),
        HONE_SINKS_DIR: stateDir,
        HONE_SINKS_PROJECT: "lakes",
        WANDB_MODE: "offline",
        SWANLAB_MODE: "offline",
      },
    });
  }

  /** As when a container is killed: everything at once. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    process.kill(-(this.#child.pid ?? assert.fail("not started")), "SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  }
}
