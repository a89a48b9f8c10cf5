import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDiskFull } from "@hone/core";
import { IMITATION_TERMS } from "@hone/rl";
import { eventually, onSmallDisk, temporaryFolder, torchPython } from "@hone/testing";
import { testCriticEngine } from "../domain/critic/critic-engine.suite.ts";
import { freshModel, minibatch, testTrainingEngine } from "../domain/step/training-engine.suite.ts";
import { areGone, EXACT, GroupPool, torchHost, withoutRanks, workersBelow } from "../testing/torch-host.ts";
import { OPTIMIZER_FOLDER } from "./fsdp-files.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";

const { python, skip } = torchPython(process.env);
const host = torchHost(python, process.env);
const groups = new GroupPool();
after(() => groups.close());

testTrainingEngine({
  name: "FsdpTrainingEngine",
  create: (config) => new FsdpTrainingEngine({ ...config, ...EXACT, worldSize: 1 }, host, groups.start),
  optimizer: OPTIMIZER_FOLDER,
  skip,
});

testCriticEngine({
  name: "FsdpTrainingEngine",
  create: (config) => new FsdpTrainingEngine({ ...config, ...EXACT, worldSize: 1 }, host, groups.start),
  skip,
});

test("training in bfloat16 matches training in float32 up to rounding", {
  skip,
  timeout: 3_600_000,
}, async () => {
  const losses: number[][] = [];
  for (const computeType of ["float32", "bfloat16"] as const) {
    const config = { ...freshModel, ...EXACT, computeType, worldSize: 1 };
    const engine = new FsdpTrainingEngine(config, host, groups.start);
    try {
      await engine.initialise();
      const batch = { ...minibatch(1), terms: IMITATION_TERMS, entropyCoefficient: 0 };
      const found: number[] = [];
      for (let i = 0; i < 10; i++) found.push((await engine.trainMinibatch(batch)).loss);
      losses.push(found);
    } finally {
      await engine.close();
    }
  }
  const [exact, rounded] = losses as [number[], number[]];
  assert.notDeepEqual(rounded, exact);
  // A bfloat16 has a significand of 8 bits.
  exact.forEach((loss, i) => {
    assert.ok(Math.abs(rounded[i]! - loss) < 0.03 * Math.abs(loss), `${rounded[i]} beside ${loss}`);
  });
});

test("workers end when their trainer is killed", {
  skip: skip || withoutRanks(2, host),
  timeout: 3_600_000,
}, async () => {
  const module = fileURLToPath(new URL("../testing/abandoned-workers.ts", import.meta.url));
  const program = `import(${JSON.stringify(module)}).then((m) => m.startAndSay(${JSON.stringify(python)}, process.env))`;
  const trainer = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [line] = await once(createInterface({ input: trainer.stdout }), "line");
    assert.equal(line, "started");
    const workers = await workersBelow(trainer.pid!);
    assert.equal(workers.length, 2);
    trainer.kill("SIGKILL");
    await eventually("the end of both workers", () => areGone(workers), { deadlineMs: 600_000 });
  } finally {
    trainer.kill("SIGKILL");
  }
});

test("a full disk is reported as a full disk, for weights and for the optimizer, and the engine works afterwards", {
  skip,
  timeout: 3_600_000,
}, async (context) => {
  // The weights take 28 KB, the optimizer twice as much.
  for (const bytes of [16 * 1_024, 64 * 1_024]) {
    await onSmallDisk(context, bytes, async (disk) => {
      const engine = new FsdpTrainingEngine({ ...freshModel, ...EXACT, worldSize: 1 }, host, groups.start);
      await using folder = await temporaryFolder("room");
      try {
        await engine.initialise();
        await engine.trainMinibatch(minibatch(1));
        await assert.rejects(engine.save(path.join(disk.path, "state")), isDiskFull);
        await engine.save(folder.path);
      } finally {
        await engine.close();
      }
    });
  }
});
