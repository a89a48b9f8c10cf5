import assert from "node:assert/strict";
import { after, test } from "node:test";
import { freshModel, minibatch, testTrainingEngine } from "../domain/training-engine.suite.ts";
import { EXACT, GroupPool, torchHost, torchPython } from "../testing/torch-host.ts";
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

test("layers in bfloat16 train as those in float32 do, but for their digits", {
  skip,
  timeout: 3_600_000,
}, async () => {
  const losses: number[][] = [];
  for (const computeType of ["float32", "bfloat16"] as const) {
    const config = { ...freshModel, ...EXACT, computeType, worldSize: 1 };
    const engine = new FsdpTrainingEngine(config, host, groups.start);
    try {
      await engine.initialise();
      const batch = { ...minibatch(1), loss: { kind: "cross_entropy" as const }, entropyCoefficient: 0 };
      const found: number[] = [];
      for (let i = 0; i < 10; i++) found.push((await engine.trainMinibatch(batch)).loss);
      losses.push(found);
    } finally {
      await engine.close();
    }
  }
  const [exact, rounded] = losses as [number[], number[]];
  assert.notDeepEqual(rounded, exact);
  // A bfloat16 has 8 bits.
  exact.forEach((loss, i) => {
    assert.ok(Math.abs(rounded[i]! - loss) < 0.03 * Math.abs(loss), `${rounded[i]} beside ${loss}`);
  });
});
