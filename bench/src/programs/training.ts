/**
 * Measures a training step: loss, gradients, clipping and AdamW, with `@hone/train` as the trainer runs it.
 *
 *   node bench/src/programs/training.ts [--shape example|135m|0.5b] [--lora RANK] [--rounds 5] [--layers N] [--hidden N]
 *        [--rows N] [--rowTokens N] [--loss ppo_clip|cross_entropy] [--microbatchTokens N] [--threads N] [--together] [--spinUs 0]
 *        [--recompute LAYERS] [--int8] [--int8Gradients] [--profile PREFIX] [--json]
 *
 * `example`: data shaped like the first example: 4 groups of 8 rollouts on one random 4x4 map, every turn a fresh prompt of
 * the map with the player's place, answered by four tokens. `135m`: the shape of SmolLM2-135M on 4 rows of 256 tokens
 * (--rows, --rowTokens: as many). `0.5b`: that of Qwen2.5-0.5B on 4 rows of 512. With --lora, adapters of this rank on every
 * projection are trained instead of the model. With --int8 the forward pass is in eight bits,
 * with --int8Gradients the gradients of the layers are, too.
 * Threads take a microbatch each, or with --together share each operator; with --spinUs they wait for the next one busily.
 * Prints the effective rate, 6 x parameters x tokens (4 x for those that adapters leave alone), for the tokens of the
 * samples, were they separate, and for those that are computed. With --json it prints `ready`, then answers each line of its input with a round as JSON.
 */

import { parseArgs } from "node:util";
import { initialiseAdamW } from "@hone/checkpoint";
import { Random } from "@hone/core";
import {
  allocateShared,
  initialiseAdapters,
  initialiseWeights,
  listParameters,
  listTrained,
  type ModelSpec,
  type ModelSpecInput,
  parameterSize,
  releaseValues,
  resolveLora,
  resolveModelSpec,
  shareWeights,
} from "@hone/nn";
import { IMITATION_TERMS } from "@hone/rl";
import { exactEightBitType } from "@hone/tensor";
import {
  ADAMW_DEFAULTS,
  clipFactor,
  GradientRunner,
  isLargeModel,
  type Objective,
  predictTrainingMemory,
  ThreadSharing,
  type TrainingSample,
  UpdateThreads,
} from "@hone/train";
import { answerRounds } from "./round-loop.ts";

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "example" },
    lora: { type: "string" },
    rounds: { type: "string", default: "5" },
    layers: { type: "string" },
    hidden: { type: "string" },
    rows: { type: "string", default: "4" },
    rowTokens: { type: "string" },
    loss: { type: "string", default: "ppo_clip" },
    microbatchTokens: { type: "string", default: "1024" },
    threads: { type: "string", default: "2" },
    together: { type: "boolean", default: false },
    spinUs: { type: "string", default: "0" },
    recompute: { type: "string", default: "0" },
    profile: { type: "string" },
    int8: { type: "boolean", default: false },
    int8Gradients: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const LARGE: Readonly<Record<string, { spec: ModelSpecInput; rowTokens: number }>> = {
  "135m": {
    spec: {
      vocabSize: 49_152,
      hiddenSize: 576,
      numLayers: 30,
      numHeads: 9,
      numKeyValueHeads: 3,
      intermediateSize: 1_536,
    },
    rowTokens: 256,
  },
  "0.5b": {
    spec: {
      family: "qwen2",
      attentionBias: "inputs",
      vocabSize: 151_936,
      hiddenSize: 896,
      numLayers: 24,
      numHeads: 14,
      numKeyValueHeads: 2,
      intermediateSize: 4_864,
    },
    rowTokens: 512,
  },
};
const large = LARGE[values.shape];
const [GROUPS, ROLLOUTS, HEADER, SIDE, ANSWER] = [4, 8, 6, 4, 4];
const rowTokens = Number(values.rowTokens ?? large?.rowTokens ?? 128);
/** Steps per round, because a step of the small model is short. */
const STEPS_A_ROUND = large === undefined ? 16 : 1;

const spec = resolveModelSpec(
  large?.spec ?? {
    vocabSize: 64,
    hiddenSize: Number(values.hidden ?? 64),
    numLayers: Number(values.layers ?? 4),
    numHeads: 4,
    numKeyValueHeads: 2,
  },
);
const lora =
  values.lora === undefined
    ? undefined
    : resolveLora({ rank: Number(values.lora), alpha: 16, targets: "all-linear" });
const random = new Random(1);
const weights = {
  ...(large === undefined ? shareWeights(initialiseWeights(spec, 1)) : tiledWeights(spec)),
  ...(lora === undefined ? {} : shareWeights(initialiseAdapters(spec, lora, 1))),
};
const parameters = listTrained({ spec, lora });
const optimizer = initialiseAdamW(parameters);
const updates = new UpdateThreads(Number(values.threads));
const extent = {
  threads: Number(values.threads),
  rowTokens,
  microbatchTokens: Number(values.microbatchTokens),
  lora,
  quantizedCopies: !values.int8 ? 0 : values.int8Gradients ? 2 : 1,
};
const work = {
  sharing: values.together ? ThreadSharing.operators : ThreadSharing.microbatches,
  recomputedLayers: Number(values.recompute),
};
const runner = new GradientRunner(spec, {
  eightBits: values.int8
    ? { type: await exactEightBitType(), hasGradients: values.int8Gradients }
    : undefined,
  maxRowTokens: extent.rowTokens,
  maxMicrobatchTokens: extent.microbatchTokens,
  threads: extent.threads,
  updates,
  ...work,
  reservedBytes: isLargeModel(spec) ? predictTrainingMemory(spec, extent, work).activations : 0,
  lora,
  session: {
    spinUs: Number(values.spinUs),
    ...(values.profile === undefined ? {} : { profilePrefix: values.profile }),
  },
});
const objective: Objective =
  values.loss === "cross_entropy"
    ? { terms: IMITATION_TERMS, entropyCoefficient: 0 }
    : {
        terms: [{ name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28 } }],
        entropyCoefficient: 0.003,
      };
const matricesOf = (list: typeof parameters) =>
  list
    .filter(({ kind }) => kind === "matrix" || kind === "residual_matrix")
    .reduce((sum, parameter) => sum + parameterSize(parameter), 0);
const flopPerToken =
  6 * matricesOf(parameters) + (lora === undefined ? 0 : 4 * matricesOf(listParameters(spec)));

if (values.json) {
  await answerRounds(runRound);
} else {
  await runRound();
  for (let round = 0; round < Number(values.rounds); round++) console.log(describe(await runRound()));
}
await runner.close();
await updates.close();

interface Round {
  readonly ms: number;
  readonly updateMs: number;
  readonly coreMs: number;
  readonly sampleTokens: number;
  readonly packedTokens: number;
  readonly paddedTokens: number;
}

async function runRound(): Promise<Round> {
  const before = process.cpuUsage();
  const totals = { ms: 0, updateMs: 0, sampleTokens: 0, packedTokens: 0, paddedTokens: 0 };
  for (let step = 0; step < STEPS_A_ROUND; step++) {
    const samples = large === undefined ? lakeMinibatch() : longRows();
    const started = performance.now();
    const found = await runner.differentiate(weights, samples, objective);
    const updateStarted = performance.now();
    const factor = clipFactor(await updates.norm(found.gradients), 1);
    await updates.update(
      parameters,
      weights,
      found.gradients,
      optimizer,
      { ...ADAMW_DEFAULTS, learningRate: 1e-3 },
      factor,
    );
    releaseValues(found.gradients);
    totals.ms += performance.now() - started;
    totals.updateMs += performance.now() - updateStarted;
    totals.sampleTokens += found.sampleTokenCount;
    totals.packedTokens += found.packedTokenCount;
    totals.paddedTokens += found.paddedTokenCount;
  }
  const { user, system } = process.cpuUsage(before);
  return { ...totals, coreMs: (user + system) / 1_000 };
}

function describe({ ms, updateMs, coreMs, sampleTokens, packedTokens, paddedTokens }: Round): string {
  const rate = (tokens: number) => ((flopPerToken * tokens) / ms / 1e6).toFixed(1);
  const perStep = (value: number) => (value / STEPS_A_ROUND).toFixed(1);
  return (
    `${values.shape}: ${perStep(ms)} ms a step (update ${perStep(updateMs)}, CPU ${perStep(coreMs)}); tokens ` +
    `${perStep(sampleTokens)} packed to ${perStep(packedTokens)}, padded ${perStep(paddedTokens)}; ` +
    `${Math.round((sampleTokens / ms) * 1_000)} sample tokens/s; GFLOP/s effective ${rate(sampleTokens)}, ` +
    `computed ${rate(packedTokens)}; peak ${Math.round(process.resourceUsage().maxRSS / 1_024)} MiB`
  );
}

/** Random weights of a model's size, created in place; time and memory of a step are the same as with real ones. */
function tiledWeights(model: ModelSpec): Record<string, Float32Array> {
  const tile = Float32Array.from({ length: 4_093 }, () => (random.next() - 0.5) * 0.06);
  return Object.fromEntries(
    listParameters(model).map((parameter) => {
      const values = allocateShared(parameterSize(parameter));
      if (parameter.kind === "norm") values.fill(1);
      else
        for (let at = 0; at < values.length; at += tile.length)
          values.set(tile.subarray(0, values.length - at), at);
      return [parameter.name, values];
    }),
  );
}

function longRows(): TrainingSample[] {
  return Array.from({ length: Number(values.rows) }, () => {
    const tokenIds = Array.from({ length: rowTokens }, () => random.nextInt(spec.vocabSize));
    return sampleOf(tokenIds, 1);
  });
}

function lakeMinibatch(): TrainingSample[] {
  const samples: TrainingSample[] = [];
  for (let group = 0; group < GROUPS; group++) {
    const map = Array.from({ length: SIDE * SIDE }, () => 10 + random.nextInt(3));
    const start = random.nextInt(map.length);
    for (let rollout = 0; rollout < ROLLOUTS; rollout++) {
      let player = start;
      const turns = 2 + random.nextInt(6);
      for (let turn = 0; turn < turns; turn++) {
        const grid = map.flatMap((cell, at) => [
          at === player ? 20 : cell,
          ...(at % SIDE === SIDE - 1 ? [21] : []),
        ]);
        const prompt = [...Array.from({ length: HEADER }, (_, i) => i), ...grid, 22, 23];
        const move = random.nextInt(ANSWER);
        samples.push(sampleOf([...prompt, 30, 40 + move, 31, 1], prompt.length));
        player = (player + [map.length - 1, SIDE, 1, map.length - SIDE][move]!) % map.length;
      }
    }
  }
  return samples;
}

/** @param promptLength tokens that are not trained */
function sampleOf(tokenIds: readonly number[], promptLength: number): TrainingSample {
  const trained = tokenIds.length - promptLength;
  return {
    tokenIds: [...tokenIds],
    lossMask: tokenIds.map((_, i) => (i < promptLength ? 0 : 1)),
    inputs: {
      behaviourLogprob: Array.from({ length: trained }, () => -random.next() * 2),
      advantage: Array.from({ length: trained }, () => random.next() - 0.5),
    },
    weights: Array.from({ length: trained }, () => 1 / 600),
  };
}
