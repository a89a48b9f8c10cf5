/**
 * The workers compute what the embedded engine computes: loss, scores and gradients of the same batches, on one, two and
 * four ranks, for whole models and adapters; AdamW on the same gradients; a state of two ranks goes on on four.
 *
 * Gradients are seen through the port: with both betas 0, a large epsilon and a rate of 1000 epsilons, an update moves
 * a weight by 1000 g (1 - |g| / epsilon).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { listTrained, resolveLora, resolveModelSpec } from "@hone/nn";
import { temporaryFolder, torchPython } from "@hone/testing";
import { inspectModel, loadAdapter, loadModel, type TrainingSample, updateAdamW } from "@hone/train";
import type { Minibatch, TrainingEngine } from "../domain/training-engine.ts";
import type { EngineConfig } from "../engine/engine-config.ts";
import { OnnxTrainingEngine } from "../engine/onnx-training-engine.ts";
import { EXACT, torchHost } from "../testing/torch-host.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";

const { python, skip } = torchPython(process.env);
const host = torchHost(python, process.env);
const TIMEOUT_MS = 3_600_000;

const LOSS_TOLERANCE = 1e-5;
const GRADIENT_TOLERANCE = 1e-4;
const EPSILON = 1e6;
const GAIN = 1_000;

const PRETRAINED = path.join(
  import.meta.dirname,
  "../../../../libs/train/fixtures/families/llama-scaled-biased",
);
const VOCABULARY = 16;
/** Small, so that there are more microbatches than ranks, or fewer, as a batch has it. */
const LIMITS = { maxRowTokens: 24, maxMicrobatchTokens: 48 };

const whole: EngineConfig = {
  ...LIMITS,
  spec: resolveModelSpec({
    vocabSize: VOCABULARY,
    hiddenSize: 16,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    headDim: 4,
    initializerRange: 0.2,
  }),
  start: { kind: "fresh", seed: 3 },
  companions: {},
};
const inspected = await inspectModel(PRETRAINED);
const adapted: EngineConfig = {
  ...LIMITS,
  ...inspected,
  start: { kind: "checkpoint", folder: PRETRAINED },
  companions: {},
  adapters: {
    lora: resolveLora({ rank: 2, alpha: 8, targets: "all-linear" }),
    seed: 4,
    basePlace: PRETRAINED,
    exportedBase: { place: PRETRAINED },
  },
};

/** Conversations of one group: a shared prompt, two turns that are trained with a user's between them, of uneven length. */
function samplesOf(seed: number, count: number): TrainingSample[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const lengths = [2 + random.nextInt(3), 2, 1 + random.nextInt(4)];
    const lossMask = [0, 0, 0, 0, 0, ...[1, 0, 1].flatMap((mask, i) => Array(lengths[i]!).fill(mask))];
    const tokenIds = lossMask.map((_, i) => (i < 5 ? i + 1 : random.nextInt(4)));
    const trained = lossMask.filter((mask) => mask === 1).length;
    const numbers = (value: () => number) => Array.from({ length: trained }, value);
    return {
      tokenIds,
      lossMask,
      logprobs: numbers(() => -3 + random.next()),
      referenceLogprobs: numbers(() => -3 + random.next()),
      advantages: numbers(() => 2 * random.next() - 1),
      weights: numbers(() => 1 / (trained * count)),
    };
  });
}

const NEUTRAL = { learningRate: 0, beta1: 0, beta2: 0, epsilon: 1, weightDecay: 0 };
const base = { entropyCoefficient: 0, optimizer: NEUTRAL, maxGradNorm: 1e9 };
const BATCHES: Readonly<Record<string, Minibatch>> = {
  "a clipped ratio with entropy and KL": {
    ...base,
    samples: samplesOf(1, 9),
    loss: { kind: "ppo_clip", clipLow: 0.2, clipHigh: 0.28, dualClip: 3 },
    entropyCoefficient: 0.02,
    kl: { kind: "k3", coefficient: 0.1 },
    temperature: 0.8,
  },
  "fewer microbatches than ranks": {
    ...base,
    samples: samplesOf(2, 1),
    loss: { kind: "ppo_clip", clipLow: 0.2, clipHigh: 0.28 },
    kl: { kind: "k2", coefficient: 0.1 },
  },
  imitation: { ...base, samples: samplesOf(3, 6), loss: { kind: "cross_entropy" } },
};

type Values = Readonly<Record<string, Float32Array>>;

async function weightsOf(engine: TrainingEngine, config: EngineConfig, folder: string): Promise<Values> {
  await engine.saveWeights(folder);
  return config.adapters === undefined
    ? (await loadModel(folder)).weights
    : (await loadAdapter(folder, config.spec)).weights;
}

interface Found {
  readonly loss: number;
  readonly gradNorm: number;
  readonly logprobs: readonly Float32Array[];
  readonly entropies: readonly Float32Array[];
  readonly gradients: Values;
}

/** What an engine finds at its first weights, which it has again afterwards. */
async function differentiate(
  engine: TrainingEngine,
  config: EngineConfig,
  batch: Minibatch,
  folder: string,
): Promise<Found> {
  const start = path.join(folder, "start");
  const before = await weightsOf(engine, config, start);
  const optimizer = { ...NEUTRAL, learningRate: GAIN * EPSILON, epsilon: EPSILON };
  const found = await engine.trainMinibatch({ ...batch, optimizer });
  const after = await weightsOf(engine, config, path.join(folder, "moved"));
  await engine.load(start);
  const gradients = Object.fromEntries(
    Object.entries(before).map(([name, values]) => [
      name,
      values.map((value, i) => (value - after[name]![i]!) / GAIN),
    ]),
  );
  return { ...found, gradients };
}

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

/** Ordinary updates, whose optimizer has a past. */
function updates(count: number): Minibatch[] {
  const optimizer = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };
  return Array.from({ length: count }, (_, i) => ({
    ...BATCHES["a clipped ratio with entropy and KL"]!,
    samples: samplesOf(10 + i, 6),
    optimizer,
    maxGradNorm: 0.5,
  }));
}

function assertNear(found: Values, expected: Values, tolerance: number): void {
  for (const [name, values] of Object.entries(expected)) {
    values.forEach((value, i) => {
      const got = found[name]![i]!;
      assert.ok(Math.abs(got - value) <= tolerance, `${name}[${i}]: ${got}, expected ${value}`);
    });
  }
}

describe("FSDP2 beside the embedded engine", { skip, timeout: TIMEOUT_MS }, () => {
  test("a state that two ranks wrote goes on on four; each number of ranks finds the same", {
    timeout: TIMEOUT_MS,
  }, async () => {
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
    for (const worldSize of [1, 2, 4]) {
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
        // Each update moves a weight by about the rate, 0.01.
        assertNear(await weightsOf(engine, whole, at(`end-${worldSize}`)), straight, 1e-4);
      } finally {
        await engine.close();
      }
    }
  });

  test("adapters on two ranks, with layers computed again", { timeout: TIMEOUT_MS }, async () => {
    await using folder = await temporaryFolder("parity");
    const found: Found[][] = [];
    const ends: Values[] = [];
    for (const engine of [
      new OnnxTrainingEngine({ ...adapted, threads: 1 }),
      new FsdpTrainingEngine({ ...adapted, ...EXACT, recomputesLayers: true, worldSize: 2 }, host),
    ]) {
      try {
        await engine.initialise();
        const place = path.join(folder.path, String(found.length));
        // B of a new adapter is 0, and so is A's gradient: one update makes both count.
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

  test("AdamW on the same gradients, and attention in blocks", { timeout: TIMEOUT_MS }, () => {
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
    const answer = JSON.parse(ran.stdout) as { parameters: number[][]; attention: number };

    const named = (of: readonly number[][]) =>
      Object.fromEntries(parameters.map(({ name }, i) => [name, Float32Array.from(of[i]!)]));
    const weights = named(start);
    const zeros = () => named(sizes.map((size) => Array<number>(size).fill(0)));
    const state = { step: 0, m: zeros(), v: zeros() };
    for (const gradient of gradients) updateAdamW(parameters, weights, named(gradient), state, options);
    // Four updates of up to 0.01 on weights of up to 0.5, in float32.
    assertNear(named(answer.parameters), weights, 1e-6);
    assert.ok(answer.attention <= 1e-5, `attention in blocks differs by ${answer.attention}`);
  });
});
