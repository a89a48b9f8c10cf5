/**
 * The workers compute what the embedded engine computes: the loss, scores and gradients of the same batches, on one, two and
 * four ranks, for whole models and adapters, and the same AdamW updates. Four ranks can load the state of two.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { listTrained } from "@hone/nn";
import { temporaryFolder, torchPython } from "@hone/testing";
import { updateAdamW } from "@hone/train";
import { criticUpdates, suiteCritic } from "../domain/critic/critic-engine.suite.ts";
import type { ValueResult } from "../domain/critic/critic-engine.ts";
import { OnnxTrainingEngine } from "../engine/onnx-training-engine.ts";
import {
  adapted,
  BATCHES,
  differentiate,
  type Found,
  updates,
  type Values,
  weightsOf,
  whole,
} from "../testing/fsdp-fixtures.ts";
import { EXACT, ranksAtHand, torchHost } from "../testing/torch-host.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";

const { python, skip } = torchPython(process.env);
const host = torchHost(python, process.env);
const TIMEOUT_MS = 3_600_000;
/** Numbers of workers that are compared: each worker needs a GPU of its own where they use GPUs. */
const WORLD_SIZES = [1, 2, 4].filter((worldSize) => worldSize <= ranksAtHand(host));
const SMALL_WORLD_SIZES = WORLD_SIZES.filter((worldSize) => worldSize <= 2);

const LOSS_TOLERANCE = 1e-5;
const GRADIENT_TOLERANCE = 1e-4;
function assertSame(found: Found, expected: Found): void {
  const close = (a: number, b: number, tolerance: number, what: string) =>
    assert.ok(Math.abs(a - b) <= tolerance, `${what}: ${a}, expected ${b}`);
  close(found.loss, expected.loss, LOSS_TOLERANCE, "loss");
  close(found.gradNorm, expected.gradNorm, GRADIENT_TOLERANCE * expected.gradNorm, "gradient norm");
  for (const field of ["logprobs", "entropies"] as const) {
    expected[field].forEach((values, sample) => {
      values.forEach((value, i) => {
        close(found[field][sample]![i]!, value, LOSS_TOLERANCE, `${field}[${sample}][${i}]`);
      });
    });
  }
  let [difference, size] = [0, 0];
  for (const [name, values] of Object.entries(expected.gradients)) {
    values.forEach((value, i) => {
      difference += (found.gradients[name]![i]! - value) ** 2;
      size += value ** 2;
    });
  }
  const relative = Math.sqrt(difference / size);
  assert.ok(relative <= GRADIENT_TOLERANCE, `gradients differ by ${relative}`);
}

function assertNear(found: Values, expected: Values, tolerance: number): void {
  for (const [name, values] of Object.entries(expected)) {
    values.forEach((value, i) => {
      const got = found[name]![i]!;
      assert.ok(Math.abs(got - value) <= tolerance, `${name}[${i}]: ${got}, expected ${value}`);
    });
  }
}

describe("FSDP2 compared with the embedded engine", { skip, timeout: TIMEOUT_MS }, () => {
  test("four ranks continue from the state of two; every number of ranks computes the same", {
    timeout: TIMEOUT_MS,
  }, async (context) => {
    context.diagnostic(`numbers of ranks: ${WORLD_SIZES.join(", ")}`);
    await using folder = await temporaryFolder("parity");
    const at = (name: string) => path.join(folder.path, name);
    const onnx = new OnnxTrainingEngine({ ...whole, threads: 1 });
    const expected: Record<string, Found> = {};
    const steps = updates(3);
    let straight: Values;
    try {
      await onnx.initialise();
      for (const [name, batch] of Object.entries(BATCHES)) {
        expected[name] = await differentiate(onnx, whole, batch, at("onnx"));
      }
      for (const step of steps) await onnx.trainMinibatch(step);
      straight = await weightsOf(onnx, whole, at("straight"));
    } finally {
      await onnx.close();
    }
    for (const worldSize of WORLD_SIZES) {
      const engine = new FsdpTrainingEngine({ ...whole, ...EXACT, worldSize }, host);
      try {
        await engine.initialise();
        for (const [name, batch] of Object.entries(BATCHES)) {
          assertSame(await differentiate(engine, whole, batch, at(`ranks-${worldSize}`)), expected[name]!);
        }
        if (worldSize === 4) await engine.load(at("two-ranks"));
        else for (const step of steps.slice(0, 2)) await engine.trainMinibatch(step);
        if (worldSize === 2) await engine.save(at("two-ranks"));
        await engine.trainMinibatch(steps[2]!);
        // Each update changes a weight by about the learning rate, 0.01.
        assertNear(await weightsOf(engine, whole, at(`end-${worldSize}`)), straight, 1e-4);
      } finally {
        await engine.close();
      }
    }
  });

  test("adapters on two ranks, with recomputed layers", { timeout: TIMEOUT_MS }, async (context) => {
    await using folder = await temporaryFolder("parity");
    const worldSize = SMALL_WORLD_SIZES.at(-1)!;
    context.diagnostic(`number of ranks: ${worldSize}`);
    const found: Found[][] = [];
    const ends: Values[] = [];
    for (const engine of [
      new OnnxTrainingEngine({ ...adapted, threads: 1 }),
      new FsdpTrainingEngine({ ...adapted, ...EXACT, recomputesLayers: true, worldSize }, host),
    ]) {
      try {
        await engine.initialise();
        const place = path.join(folder.path, String(found.length));
        // The matrix B of a new adapter is 0, so the gradient of A is 0 too. After one update both gradients are non-zero.
        await engine.trainMinibatch(updates(1)[0]!);
        const here: Found[] = [];
        for (const batch of Object.values(BATCHES)) {
          here.push(await differentiate(engine, adapted, batch, place));
        }
        found.push(here);
        for (const step of updates(2)) await engine.trainMinibatch(step);
        ends.push(await weightsOf(engine, adapted, path.join(place, "end")));
      } finally {
        await engine.close();
      }
    }
    found[0]!.forEach((expected, i) => {
      assertSame(found[1]![i]!, expected);
    });
    assertNear(ends[1]!, ends[0]!, 1e-4);
  });

  test("a critic on one and two ranks", { timeout: TIMEOUT_MS }, async () => {
    await using folder = await temporaryFolder("parity");
    const found: ValueResult[][] = [];
    const engines = [
      new OnnxTrainingEngine({ ...suiteCritic, threads: 1 }),
      ...SMALL_WORLD_SIZES.map(
        (worldSize) => new FsdpTrainingEngine({ ...suiteCritic, ...EXACT, worldSize }, host),
      ),
    ];
    for (const [i, engine] of engines.entries()) {
      try {
        found.push(await criticUpdates(engine, path.join(folder.path, String(i)), 4));
      } finally {
        await engine.close();
      }
    }
    const [expected, ...others] = found as [ValueResult[], ...ValueResult[][]];
    for (const results of others) {
      results.forEach(({ loss, gradNorm, values }, update) => {
        const wanted = expected[update]!;
        const close = (a: number, b: number, what: string) =>
          assert.ok(Math.abs(a - b) < 1e-4, `${what} of update ${update}: ${a}, expected ${b}`);
        close(loss, wanted.loss, "loss");
        close(gradNorm, wanted.gradNorm, "gradient norm");
        values
          .flatMap((each) => [...each])
          .forEach((value, i) => {
            close(value, wanted.values.flatMap((each) => [...each])[i]!, "value");
          });
      });
    }
  });

  test("AdamW updates from the same gradients, and attention in blocks", { timeout: TIMEOUT_MS }, () => {
    const random = new Random(5);
    const parameters = listTrained({ spec: whole.spec });
    const values = (size: number, scale: number) =>
      Array.from({ length: size }, () => Math.fround(scale * (random.next() - 0.5)));
    const sizes = parameters.map(({ shape }) => shape.reduce((product, size) => product * size, 1));
    const options = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };
    const start = sizes.map((size) => values(size, 1));
    const gradients = Array.from({ length: 4 }, (_, step) => sizes.map((size) => values(size, 10 ** -step)));
    const isDecayed = parameters.map(({ kind }) => kind !== "norm" && kind !== "bias");
    const ran = spawnSync(python, ["-m", "tests.numbers"], {
      cwd: path.join(import.meta.dirname, "../../torch"),
      env: { ...host.environment, PYTHONDONTWRITEBYTECODE: "1" },
      input: JSON.stringify({ start, gradients, isDecayed, options }),
      encoding: "utf8",
      timeout: TIMEOUT_MS,
      maxBuffer: 64 * 2 ** 20,
    });
    assert.equal(ran.status, 0, ran.stderr);
    const answer = JSON.parse(ran.stdout) as {
      parameters: number[][];
      attention: number;
      blocks: number;
      maskMiB: number;
    };

    const named = (of: readonly number[][]) =>
      Object.fromEntries(parameters.map(({ name }, i) => [name, Float32Array.from(of[i]!)]));
    const weights = named(start);
    const zeros = () => named(sizes.map((size) => Array<number>(size).fill(0)));
    const state = { step: 0, m: zeros(), v: zeros() };
    for (const gradient of gradients) updateAdamW(parameters, weights, named(gradient), state, options);
    // There are four updates of up to 0.01, on weights of up to 0.5, in float32.
    assertNear(named(answer.parameters), weights, 1e-6);
    assert.ok(answer.attention <= 1e-5, `attention in blocks differs by ${answer.attention}`);
    assert.equal(answer.blocks, 0);
    // The scores of every pair of tokens would take 43 GB.
    assert.ok(answer.maskMiB < 128, `the blocks of 65,536 tokens took ${answer.maskMiB} MiB`);
  });
});
