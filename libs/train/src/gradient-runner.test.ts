/** Compares the whole model with PyTorch; fixtures/make_reference.py made the reference values. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readTensors } from "@hone/checkpoint/testing";
import { type ModelSpec, shareWeights, specFromConfig } from "@hone/nn";
import { IMITATION_TERMS } from "@hone/rl";
import type { TrainingSample } from "./batches/microbatch.ts";
import type { Objective } from "./batches/plan-passes.ts";
import { MicrobatchError } from "./errors.ts";
import { GradientRunner, type LossAndGradients, type RunnerOptions } from "./gradient-runner.ts";
import { ThreadSharing } from "./graph/training-memory.ts";

interface Reference {
  readonly config: Record<string, unknown>;
  readonly tokens: number[][];
  readonly mask: number[][];
  readonly advantage: number[][];
  readonly behaviour: number[][];
  readonly logprobs: number[][];
  readonly entropy: number[][];
  readonly loss: Record<string, number>;
  readonly constants: { clipLow: number; clipHigh: number; entropy: number; dualClip: number };
}

const folder = new URL("../fixtures/", import.meta.url);
const reference = JSON.parse(readFileSync(new URL("qwen3-tiny.json", folder), "utf8")) as Reference;
const tensors = await readTensors(fileURLToPath(new URL("qwen3-tiny.safetensors", folder)));
const spec: ModelSpec = specFromConfig({
  attention_bias: false,
  rms_norm_eps: 1e-6,
  ...reference.config,
});

const weights = Object.fromEntries(
  [...tensors].filter(([name]) => name.startsWith("w.")).map(([name, values]) => [name.slice(2), values]),
);
const trainedCount = reference.mask.flat().reduce((sum, bit) => sum + bit, 0);
const trained = (values: number[][], row: number) =>
  values[row]!.filter((_, i) => reference.mask[row]![i + 1] === 1);
const samples: TrainingSample[] = reference.tokens.map((tokenIds, row) => ({
  tokenIds,
  lossMask: reference.mask[row]!,
  inputs: {
    behaviourLogprob: trained(reference.behaviour, row),
    advantage: trained(reference.advantage, row),
  },
  weights: trained(reference.behaviour, row).map(() => 1 / trainedCount),
}));
const { clipLow, clipHigh, entropy, dualClip } = reference.constants;
const objectives: Record<string, Objective> = {
  ppo: { terms: [{ name: "ppo_clip", constants: { clipLow, clipHigh } }], entropyCoefficient: entropy },
  dual: { terms: [{ name: "ppo_clip", constants: { clipLow, clipHigh, dualClip } }], entropyCoefficient: 0 },
  cross_entropy: { terms: IMITATION_TERMS, entropyCoefficient: 0 },
};

/** With float32 and sums in another order, values of size 1 agree to a few units in the sixth digit. */
const TOLERANCE = 2e-5;

function assertClose(actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  assert.equal(actual.length, expected.length, what);
  for (let i = 0; i < expected.length; i++) {
    const error = Math.abs(actual[i]! - expected[i]!);
    assert.ok(
      error <= TOLERANCE * (1 + Math.abs(expected[i]!)),
      `${what}[${i}]: ${actual[i]} is not ${expected[i]}`,
    );
  }
}

function assertPyTorchs(found: LossAndGradients, objective: string): void {
  assertClose([found.loss], [reference.loss[objective]!], "loss");
  for (const parameter of Object.keys(weights)) {
    assertClose(found.gradients[parameter]!, tensors.get(`${objective}.g.${parameter}`)!, parameter);
  }
}

async function withRunner<T>(
  limits: Partial<RunnerOptions>,
  use: (runner: GradientRunner) => Promise<T>,
): Promise<T> {
  const runner = new GradientRunner(spec, { maxRowTokens: 64, maxMicrobatchTokens: 1024, ...limits });
  try {
    return await use(runner);
  } finally {
    await runner.close();
  }
}

describe("GradientRunner", () => {
  test("score() returns PyTorch's log-probabilities and entropies", async () => {
    const scored = await withRunner({}, (runner) => runner.score(weights, samples));
    assertClose(
      scored.scores,
      samples.flatMap((_, row) => trained(reference.logprobs, row)),
      "logprobs",
    );
    assertClose(
      scored.entropies,
      samples.flatMap((_, row) => trained(reference.entropy, row)),
      "entropies",
    );
    assert.ok(scored.packedTokenCount < scored.sampleTokenCount, "the shared prefix is computed once");
  });

  for (const [name, objective] of Object.entries(objectives)) {
    test(`differentiate() returns PyTorch's loss and gradients: ${name}`, async () => {
      assertPyTorchs(
        await withRunner({}, (runner) => runner.differentiate(weights, samples, objective)),
        name,
      );
    });
  }

  test("rows and microbatches of any size give the same loss and gradients", async () => {
    const objective = objectives.ppo!;
    const alone = await withRunner({ maxRowTokens: 1, maxMicrobatchTokens: 1 }, (runner) =>
      runner.differentiate(weights, samples, objective),
    );
    assert.ok(alone.paddedTokenCount > 0 && alone.packedTokenCount === alone.sampleTokenCount);
    const packed = await withRunner({}, (runner) => runner.differentiate(weights, samples, objective));
    assertClose(packed.scores, alone.scores, "logprobs");
    for (const name of Object.keys(weights))
      assertClose(packed.gradients[name]!, alone.gradients[name]!, name);
  });

  test("a head in chunks, of which some are empty, gives PyTorch's loss and gradients", async () => {
    for (const [name, positions] of [
      ["ppo", 5],
      ["dual", 16],
    ] as const) {
      const limits = { maxMicrobatchTokens: 64, headChunkValues: positions * spec.vocabSize };
      await withRunner(limits, async (runner) => {
        const found = await runner.differentiate(weights, samples, objectives[name]!);
        assertPyTorchs(found, name);
        const scored = await runner.score(weights, samples);
        assert.deepEqual(scored.scores, found.scores);
        assert.deepEqual(scored.entropies, found.entropies);
      });
    }
  });

  test("rows in pieces give PyTorch's loss and gradients for long and short rows, with and without recomputed layers", async () => {
    for (const [rowPieces, maxRowTokens, recomputedLayers] of [
      [2, 64, 0],
      [3, 64, spec.numLayers],
      [4, 1, 1],
    ] as const) {
      const limits = { rowPieces, maxRowTokens, recomputedLayers };
      const found = await withRunner(limits, (runner) =>
        runner.differentiate(weights, samples, objectives.ppo!),
      );
      assertPyTorchs(found, "ppo");
    }
  });

  test("a row with fewer tokens than pieces is padded", async () => {
    const [tokenIds] = reference.tokens;
    const short = [{ tokenIds: tokenIds!.slice(0, 2), lossMask: [0, 1], weights: [1] }];
    const run = (rowPieces: number) =>
      withRunner({ rowPieces }, (runner) => runner.differentiate(weights, short, objectives.cross_entropy!));
    const [whole, cut] = [await run(1), await run(4)];
    assert.deepEqual([whole.paddedTokenCount, cut.paddedTokenCount], [1, 4]);
    assertClose([cut.loss], [whole.loss], "loss");
    for (const name of Object.keys(weights)) assertClose(cut.gradients[name]!, whole.gradients[name]!, name);
  });

  test("the same call gives the same bits on any number of threads, with and without recomputed layers", async () => {
    const shared = shareWeights(weights);
    const headChunkValues = 4 * spec.vocabSize;
    const run = (options: Partial<RunnerOptions>) =>
      withRunner(
        { maxRowTokens: 12, maxMicrobatchTokens: 12, headChunkValues, ...options },
        async (runner) => [
          await runner.differentiate(shared, samples, objectives.ppo!),
          await runner.differentiate(shared, samples, objectives.ppo!),
        ],
      );
    const options = [
      {},
      { threads: 2 },
      { threads: 3, recomputedLayers: 1 },
      { threads: 2, sharing: ThreadSharing.operators, recomputedLayers: spec.numLayers },
      { reservedBytes: 2 ** 20 + 1 },
    ];
    const [first, ...others] = (await Promise.all(options.map(run))).flat();
    for (const other of others) assert.deepEqual(other, first);
  });

  test("reserving memory does not change the results of alternating objectives", async () => {
    const each = (reservedBytes: number) =>
      withRunner({ reservedBytes }, async (runner) => {
        const found = [];
        for (const name of ["ppo", "cross_entropy", "ppo"]) {
          found.push(await runner.differentiate(weights, samples, objectives[name]!));
          found.push(await runner.score(weights, samples));
        }
        return found;
      });
    assert.deepEqual(await each(2 ** 20), await each(0));
  });

  test("several threads require shared weights and report a failure inside a thread", async () => {
    await withRunner({ threads: 2 }, async (runner) => {
      await assert.rejects(runner.score(weights, samples), /does not lie in shared memory/);
      const outside = samples.map((sample) => ({ ...sample, tokenIds: sample.lossMask }));
      const broken = {
        ...shareWeights(weights),
        "model.norm.weight": new Float32Array(new SharedArrayBuffer(4)),
      };
      await assert.rejects(runner.score(broken, outside), MicrobatchError);
      const scored = await runner.score(shareWeights(weights), samples);
      assert.equal(scored.scores.length, trainedCount);
    });
  });

  test("a temperature has the same effect as dividing the head by it", async () => {
    const untied = { ...spec, isTied: false };
    const table = weights["model.embed_tokens.weight"]!;
    const runner = new GradientRunner(untied, { maxRowTokens: 64, maxMicrobatchTokens: 1024 });
    const halved = await runner.score(
      { ...weights, "lm_head.weight": table.map((value) => value / 2) },
      samples,
    );
    const warm = await runner.score({ ...weights, "lm_head.weight": table }, samples, {
      temperature: 2,
    });
    await runner.close();
    assertClose(warm.scores, halved.scores, "logprobs");
  });

  test("gradients of an untied table and head add up to those of the tied one", async () => {
    const table = "model.embed_tokens.weight";
    const runner = new GradientRunner(
      { ...spec, isTied: false },
      { maxRowTokens: 64, maxMicrobatchTokens: 1024 },
    );
    const untied = await runner.differentiate(
      { ...weights, "lm_head.weight": weights[table]! },
      samples,
      objectives.ppo!,
    );
    await runner.close();
    const sum = untied.gradients[table]!.map((value, i) => value + untied.gradients["lm_head.weight"]![i]!);
    assertClose(sum, tensors.get(`ppo.g.${table}`)!, table);
  });

  test("a sample whose inputs do not match its mask is refused", async () => {
    const broken = [{ ...samples[0]!, inputs: { ...samples[0]!.inputs, advantage: [1] } }];
    await withRunner({}, (runner) =>
      assert.rejects(
        runner.differentiate(weights, broken, objectives.ppo!),
        /sample 0 has .*it needs \d+ finite numbers/,
      ),
    );
  });
});
