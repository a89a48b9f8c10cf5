import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { SinkUnavailableError } from "../../errors.ts";
import { findPython, skipWithout } from "../../testing/python.ts";
import { type MlflowServer, startMlflow } from "../testing/mlflow-server.ts";
import { runFacts, sinkSuite } from "../testing/sink.suite.ts";
import { MlflowClient } from "./mlflow-client.ts";
import { mlflowSink } from "./mlflow-sink.ts";
import { checkpointUpload } from "./upload-checkpoint.ts";

const python = findPython("mlflow");
const skip = skipWithout(python, "mlflow");
const EXPERIMENT = "runs of lakes";
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let server: MlflowServer;
before(
  async () => {
    folder = await temporaryFolder("mlflow");
    if (python !== undefined) server = await startMlflow(python, folder.path);
  },
  { timeout: 180_000 },
);
after(async () => {
  await server?.[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const { signal } = new AbortController();
const openSink = (stateDir?: string) =>
  mlflowSink({
    client: new MlflowClient({ url: server.url, authorization: undefined, signal }),
    experiment: EXPERIMENT,
    uploadCheckpoint: stateDir === undefined ? undefined : checkpointUpload(stateDir, silentLogger()),
  });
const runOf = async (name: string) =>
  (await server.run(EXPERIMENT, name)) ?? assert.fail(`MLflow has no run ${name}`);

sinkSuite(
  "the MLflow sink",
  () => ({ open: () => openSink(), read: async (name) => server.curves((await runOf(name)).id) }),
  { skip },
);

describe("mlflowSink()", { skip }, () => {
  test("settings are parameters, the run file an artefact, and the end a status", async () => {
    const sink = openSink();
    const facts = runFacts("settings-1", 2);
    for (const fact of facts.slice(0, -1)) await sink.write([fact]);
    assert.equal((await runOf("settings-1")).status, "RUNNING");
    await sink.write(facts.slice(-1));
    const run = await runOf("settings-1");
    assert.equal(run.status, "FINISHED");
    assert.equal(run.params["trainer.optimizer.learningRate"], "0.001");
    assert.equal(run.params["judge.0.kind"], "rule");
    assert.equal(run.tags["hone.checkpoint"], "runs/settings-1/checkpoints/step-2");
    assert.deepEqual(await server.artifacts(run.id), ["run.json"]);
    const ended = facts.at(-1) ?? assert.fail("no end");
    await sink.write([{ ...ended, kind: "resumed", resumption: 1 }]);
    assert.equal((await runOf("settings-1")).status, "RUNNING");
  });

  test("the last checkpoint is uploaded, without links and without what is not below the run's folder", async () => {
    const stateDir = path.join(folder.path, "state");
    const checkpoint = path.join(stateDir, "runs/kept-1/checkpoints/step-1");
    await mkdir(path.join(checkpoint, "adapter"), { recursive: true });
    await writeFile(path.join(stateDir, "secret"), "s");
    await writeFile(path.join(checkpoint, "config.json"), "{}");
    await writeFile(path.join(checkpoint, "adapter", "model.safetensors"), Buffer.alloc(3_000_000, 1));
    await symlink(path.join(stateDir, "secret"), path.join(checkpoint, "link"));
    const sink = openSink(stateDir);
    const facts = runFacts("kept-1", 1);
    for (const fact of facts) await sink.write([fact]);
    const run = await runOf("kept-1");
    const place = "checkpoints/step-1";
    assert.deepEqual(await server.artifacts(run.id, place), [`${place}/adapter`, `${place}/config.json`]);
    assert.deepEqual(await server.artifacts(run.id, `${place}/adapter`), [
      `${place}/adapter/model.safetensors`,
    ]);

    const ended = facts.at(-1);
    if (ended?.kind !== "ended") assert.fail("no end");
    await symlink(stateDir, path.join(stateDir, "runs/kept-1/checkpoints/step-2"));
    for (const name of [
      "",
      "../..",
      "runs/kept-1/checkpoints/step-2",
      "runs/other-1/checkpoints/step-1",
      "/etc",
    ])
      await sink.write([{ ...ended, checkpoint: name }]);
    assert.deepEqual(await server.artifacts(run.id, "checkpoints"), [place]);
  });

  test("a run that somebody deleted in MLflow begins anew with the next step", async () => {
    const sink = openSink();
    const facts = runFacts("deleted-1", 3);
    for (const fact of facts.slice(0, 3)) await sink.write([fact]);
    const { id } = await runOf("deleted-1");
    await fetch(`${server.url}/api/2.0/mlflow/runs/delete`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ run_id: id }),
    });
    const step = facts[4] ?? assert.fail("no step");
    await sink.write([step]).catch(() => sink.write([step]));
    const run = await runOf("deleted-1");
    assert.notEqual(run.id, id);
    assert.deepEqual(
      (await server.curves(run.id))["env/success"]?.map(([at]) => at),
      [2],
    );
  });

  test("an address at which no MLflow answers is an error that is tried again", async () => {
    for (const url of ["http://127.0.0.1:9", `${server.url}/nowhere`]) {
      const client = new MlflowClient({ url, authorization: undefined, signal });
      const sink = mlflowSink({ client, experiment: EXPERIMENT, uploadCheckpoint: undefined });
      await assert.rejects(sink.write(runFacts("away-1", 1)), SinkUnavailableError);
    }
  });
});
