/**
 * Time of a training step on data shaped like the main example: groups of 8 rollouts on one random 4x4 map, every turn
 * a fresh prompt of the map with the player's place, answered by four tokens.
 *
 *   node libs/train/bench/train-step.ts [layers] [hidden] [rowTokens] [microbatchTokens] [threads] [kind] [profile prefix]
 *
 * `kind` is how threads are used: 0 a microbatch each, 1 together on each operator, 2 the same with busy waiting.
 *
 * Prints, per minibatch of 4 groups, the time and the effective rate: 6 x parameters x tokens of the samples, were
 * they separate, and of the tokens that are computed.
 */
import { Random } from "@hone/core";
import { initialiseWeights, listParameters, parameterSize, resolveModelSpec } from "@hone/nn";
import {
  ADAMW_DEFAULTS,
  clipFactor,
  GradientRunner,
  globalNorm,
  initialiseAdamW,
  shareWeights,
  type TrainingSample,
  updateAdamW,
} from "../src/index.ts";

const [layers = 4, hidden = 64, rowTokens = 128, microbatchTokens = 1024, threads = 2, kind = 0] =
  process.argv.slice(2, 8).map(Number);
const profilePrefix = process.argv[8];
const [GROUPS, ROLLOUTS, HEADER, SIDE, ANSWER, WARM_UP, RUNS] = [4, 8, 6, 4, 4, 3, 16];

const spec = resolveModelSpec({
  vocabSize: 64,
  hiddenSize: hidden,
  numLayers: layers,
  numHeads: 4,
  numKeyValueHeads: 2,
});

function minibatch(random: Random): TrainingSample[] {
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
        const move = random.nextInt(4);
        const tokenIds = [...prompt, 30, 40 + move, 31, 1];
        samples.push({
          tokenIds,
          lossMask: tokenIds.map((_, i) => (i < prompt.length ? 0 : 1)),
          logprobs: Array.from({ length: ANSWER }, () => -random.next() * 2),
          advantages: Array.from({ length: ANSWER }, () => random.next() - 0.5),
          weights: Array.from({ length: ANSWER }, () => 1 / 600),
        });
        player = (player + [map.length - 1, SIDE, 1, map.length - SIDE][move]!) % map.length;
      }
    }
  }
  return samples;
}

const random = new Random(1);
const weights = shareWeights(initialiseWeights(spec, 1));
const optimizer = initialiseAdamW(spec);
const runner = new GradientRunner(spec, {
  maxRowTokens: rowTokens,
  maxMicrobatchTokens: microbatchTokens,
  threads: kind === 0 ? threads : 1,
  session: {
    intraOpThreads: kind === 0 ? 1 : threads,
    isSpinning: kind === 2,
    ...(profilePrefix === undefined ? {} : { profilePrefix }),
  },
});
const objective = {
  loss: { kind: "ppo_clip", clipLow: 0.2, clipHigh: 0.28 } as const,
  entropyCoefficient: 0.003,
};
const matrices = listParameters(spec)
  .filter(({ kind }) => kind === "matrix" || kind === "residual_matrix")
  .reduce((sum, parameter) => sum + parameterSize(parameter), 0);

let cpu = process.cpuUsage();
const totals = { ms: 0, updateMs: 0, samples: 0, sampleTokens: 0, packed: 0, padded: 0 };
for (let run = 0; run < WARM_UP + RUNS; run++) {
  const samples = minibatch(random);
  const started = performance.now();
  const found = await runner.differentiate(weights, samples, objective);
  const updateStarted = performance.now();
  const factor = clipFactor(globalNorm(Object.values(found.gradients)), 1);
  updateAdamW(spec, weights, found.gradients, optimizer, { ...ADAMW_DEFAULTS, learningRate: 1e-3 }, factor);
  const ended = performance.now();
  if (run < WARM_UP) {
    cpu = process.cpuUsage();
    continue;
  }
  totals.ms += ended - started;
  totals.updateMs += ended - updateStarted;
  totals.samples += samples.length;
  totals.sampleTokens += found.sampleTokenCount;
  totals.packed += found.packedTokenCount;
  totals.padded += found.paddedTokenCount;
}
const used = process.cpuUsage(cpu);
await runner.close();

const rate = (tokens: number) => ((6 * matrices * tokens) / totals.ms / 1e6).toFixed(1);
const perRun = (value: number) => (value / RUNS).toFixed(1);
console.log(
  `${layers} x ${hidden}, rows of ${rowTokens}: ${perRun(totals.ms)} ms a minibatch (update ${perRun(totals.updateMs)}, CPU ${perRun((used.user + used.system) / 1000)}), ` +
    `16 of them ${((totals.ms / RUNS) * 0.016).toFixed(2)} s; ${perRun(totals.samples)} samples, tokens ` +
    `${perRun(totals.sampleTokens)} packed to ${perRun(totals.packed)}, padded ${perRun(totals.padded)}; ` +
    `${Math.round((totals.sampleTokens / totals.ms) * 1000)} sample tokens/s; GFLOP/s effective ` +
    `${rate(totals.sampleTokens)}, computed ${rate(totals.packed)}`,
);
