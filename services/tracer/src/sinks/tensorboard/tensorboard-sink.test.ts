import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, temporaryFolder } from "@hone/testing";
import { findPython, freePort, runPython, skipWithout } from "../../testing/python.ts";
import { assertCurves, type Curves, expectedCurves, runFacts, sinkSuite } from "../testing/sink.suite.ts";
import { tensorboardSink } from "./tensorboard-sink.ts";

const python = findPython("tensorboard");
const skip = skipWithout(python, "tensorboard");
const FILE = "events.out.tfevents.hone";
const START_DEADLINE_MS = 60_000;
/** It keeps floats of 32 bits. */
const TOLERANCE = 1e-6;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  folder = await temporaryFolder("tensorboard");
});
after(() => folder[Symbol.asyncDispose]());

/** Prints what TensorBoard's own reader finds in a folder. */
const READ = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
found.Reload()
tags = found.Tags()
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in found.Scalars(tag)] for tag in tags["scalars"]},
    "texts": {tag: found.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"] if tag == "run_file"},
    "hparams": "_hparams_/session_start_info" in found.summary_metadata,
}))`;

function readWithTensorboard(runFolder: string) {
  return runPython(python ?? "", READ, [runFolder]) as {
    readonly scalars: Curves;
    readonly texts: Readonly<Record<string, string>>;
    readonly hparams: boolean;
  };
}

sinkSuite(
  "the TensorBoard sink",
  () => ({
    open: () => tensorboardSink(folder.path),
    read: async (runId) => {
      const [last = ""] = (await readdir(folder.path))
        .filter((name) => name.startsWith(runId))
        .toSorted()
        .toReversed();
      return readWithTensorboard(path.join(folder.path, last)).scalars;
    },
    tolerance: TOLERANCE,
  }),
  { skip },
);

describe("tensorboardSink()", { skip }, () => {
  test("a file cut at any byte by a kill ends with the bytes of one that was not", async () => {
    const facts = runFacts("cut-1", 3);
    const sink = tensorboardSink(folder.path);
    for (const fact of facts) await sink.write([fact]);
    const file = path.join(folder.path, "cut-1", FILE);
    const whole = await readFile(file);
    for (let cut = 0; cut < whole.length; cut += 97) {
      await truncate(file, cut);
      const again = tensorboardSink(folder.path);
      for (const fact of facts) await again.write([fact]);
      assert.deepEqual(await readFile(file), whole, `cut at ${cut}`);
    }
  });

  test("what another process wrote meanwhile is not written again", async () => {
    const facts = runFacts("shared-1", 6);
    const [one, two] = [tensorboardSink(folder.path), tensorboardSink(folder.path)];
    for (const [at, fact] of facts.entries()) {
      await (at % 2 === 0 ? one : two).write([fact]);
      if (at % 3 === 0) await (at % 2 === 0 ? two : one).write([fact]);
    }
    const { scalars } = readWithTensorboard(path.join(folder.path, "shared-1"));
    assertCurves(scalars, expectedCurves(facts), TOLERANCE);
  });

  test("a damaged end of a file is written over", async () => {
    const facts = runFacts("damaged-1", 4);
    for (const fact of facts.slice(0, 6)) await tensorboardSink(folder.path).write([fact]);
    const file = path.join(folder.path, "damaged-1", FILE);
    const bytes = await readFile(file);
    bytes[bytes.length - 9]! ^= 1;
    await writeFile(file, Buffer.concat([bytes, Buffer.alloc(100_000, 7)]));
    const again = tensorboardSink(folder.path);
    for (const fact of facts) await again.write([fact]);
    const { scalars } = readWithTensorboard(path.join(folder.path, "damaged-1"));
    assertCurves(scalars, expectedCurves(facts), TOLERANCE);
  });

  test("the run file is shown as text and as hyperparameters", async () => {
    for (const fact of runFacts("texts-1", 1)) await tensorboardSink(folder.path).write([fact]);
    const { texts, hparams } = readWithTensorboard(path.join(folder.path, "texts-1"));
    assert.match(texts.run_file ?? "", /\| trainer\.optimizer\.learningRate \| 0\.001 \|/);
    assert.ok(hparams);
  });

  test("a TensorBoard that reads along shows the whole curve, also over a record that a kill left unfinished", async () => {
    const facts = runFacts("live-1", 8);
    const place = path.join(folder.path, "live");
    const sink = tensorboardSink(place);
    for (const fact of facts.slice(0, 9)) await sink.write([fact]);
    await using server = await startTensorboard(place);
    const steps = async () => (await server.scalars("live-1", "critic/rewards/mean")).map(([step]) => step);
    await eventually("TensorBoard to show four steps", async () => (await steps()).length >= 3);

    for (const fact of facts.slice(9, 12)) await sink.write([fact]);
    const file = path.join(place, "live-1", FILE);
    await truncate(file, (await readFile(file)).length - 40);
    await new Promise((resolve) => setTimeout(resolve, 2_500)); // it reads the beginning of the record meanwhile
    const again = tensorboardSink(place);
    for (const fact of facts) await again.write([fact]);
    await eventually("TensorBoard to show all steps", async () => (await steps()).length === 8);
    const expected = expectedCurves(facts)["critic/rewards/mean"] ?? assert.fail("no such curve");
    const found = await server.scalars("live-1", "critic/rewards/mean");
    assertCurves({ reward: found }, { reward: expected }, TOLERANCE);
  });
});

/** Starts the real server of TensorBoard. */
async function startTensorboard(logdir: string) {
  const port = await freePort();
  const args = [
    "-m",
    "tensorboard.main",
    "--logdir",
    logdir,
    "--port",
    String(port),
    "--reload_interval",
    "1",
  ];
  const child = spawn(python ?? "", args, { stdio: "ignore" });
  const data = `http://127.0.0.1:${port}/data/plugin/scalars`;
  await eventually(
    "TensorBoard to answer",
    async () => (await fetch(`${data}/tags`).catch(() => undefined))?.ok === true,
    { deadlineMs: START_DEADLINE_MS },
  );
  return {
    async scalars(run: string, tag: string): Promise<[number, number][]> {
      const answer = await fetch(`${data}/scalars?${new URLSearchParams({ run, tag })}`);
      if (!answer.ok) return [];
      const points = (await answer.json()) as [number, number, number][];
      return points.map(([, step, value]) => [step, value]);
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}
