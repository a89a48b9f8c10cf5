import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { delay } from "@hone/core";
import { Quantization } from "@hone/rl";
import { temporaryFolder } from "@hone/testing";
import { testCriticEngine } from "../domain/critic/critic-engine.suite.ts";
import { freshModel, minibatch, testTrainingEngine } from "../domain/step/training-engine.suite.ts";
import { EngineLostError } from "./errors.ts";
import { OnnxTrainingEngine } from "./onnx-training-engine.ts";

const OPTIMIZER = "optimizer.safetensors";
const create = (config: typeof freshModel) => new OnnxTrainingEngine({ ...config, threads: 2 });

testTrainingEngine({ name: "OnnxTrainingEngine", create, optimizer: OPTIMIZER });
testCriticEngine({ name: "OnnxTrainingEngine", create });

test("an engine that is closed in any moment of its work leaves the process alive", async () => {
  let finished = false;
  let interrupted = 0;
  for (let moment = 0; !finished; moment++) {
    const engine = create(freshModel);
    const work = engine
      .initialise()
      .then(() => engine.trainMinibatch(minibatch(1)))
      .then(
        () => true,
        (error) => {
          assert.ok(error instanceof EngineLostError, String(error));
          interrupted++;
          return false;
        },
      );
    await delay(moment * 60);
    await engine.close();
    finished = await work;
  }
  assert.ok(interrupted > 1, `closed while it worked ${interrupted} times`);
});

test("in eight bits an engine that saves between its updates makes the same weights as one that does not", async () => {
  await using folder = await temporaryFolder("onnx");
  const config = { ...freshModel, quantization: Quantization.int8, hasQuantizedGradients: true };
  const weightsOf = async (isSaving: boolean) => {
    const engine = create(config);
    try {
      await engine.initialise();
      for (const seed of [1, 2, 3]) {
        await engine.trainMinibatch(minibatch(seed));
        if (isSaving) await engine.saveWeights(path.join(folder.path, `between-${seed}`));
        if (seed === 2) await engine.logprobs(minibatch(3).samples);
      }
      return (await engine.saveWeights(path.join(folder.path, `end-${isSaving}`))).digest;
    } finally {
      await engine.close();
    }
  };
  assert.equal(await weightsOf(true), await weightsOf(false));
});

test("the optimizer's file has the same bits after the same updates, saved and loaded in between or not", async () => {
  await using folder = await temporaryFolder("onnx");
  const [between, straight, resumed] = ["between", "straight", "resumed"].map((name) =>
    path.join(folder.path, name),
  ) as [string, string, string];
  const engines = [create(freshModel), create(freshModel)] as const;
  try {
    await engines[0].initialise();
    await engines[0].trainMinibatch(minibatch(1));
    await engines[0].save(between);
    await engines[1].load(between);
    for (const [engine, at] of [
      [engines[0], straight],
      [engines[1], resumed],
    ] as const) {
      await engine.trainMinibatch(minibatch(2));
      await engine.save(at);
    }
    const [a, b] = await Promise.all([straight, resumed].map((at) => readFile(path.join(at, OPTIMIZER))));
    assert.deepEqual(a, b);
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
});
