/**
 * The behaviour that every training engine must have: each implementation of the port runs this suite in a test file of its
 * own. Models are tiny: one made from scratch, a checkpoint of another family, and adapters on that checkpoint.
 */

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { inspectModel, loadMerged, loadModel, saveCheckpoint } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { resolveLora, resolveModelSpec } from "@hone/nn";
import { IMITATION_TERMS } from "@hone/rl";
import { ADAMW_DEFAULTS, type TrainingSample } from "@hone/train";
import type { EngineConfig } from "../../engine/engine-config.ts";
import { EngineCallError, EngineLostError } from "../../engine/errors.ts";
import type { Minibatch, TrainingEngine } from "./training-engine.ts";

/** An implementation under test. */
export interface EngineUnderTest {
  readonly name: string;
  readonly create: (config: EngineConfig) => TrainingEngine;
  /** File or folder of a state that holds the optimizer. */
  readonly optimizer: string;
  /** Why the engine cannot be tested on this machine; absent or false = it can. */
  readonly skip?: string | false;
}

const spec = resolveModelSpec({
  vocabSize: 16,
  hiddenSize: 16,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  headDim: 4,
  initializerRange: 0.2,
});
/** A model made from scratch. */
export const freshModel: EngineConfig = {
  spec,
  start: { kind: "fresh", seed: 3 },
  companions: { "tokenizer.json": "{}" },
};

/** A checkpoint of another family, in shards and bfloat16, made by make_families.py in the same folder. */
const PRETRAINED = path.join(
  import.meta.dirname,
  "../../../../../libs/checkpoint/fixtures/families/llama-scaled-biased",
);
const inspected = await inspectModel(PRETRAINED);
const pretrained: EngineConfig = {
  ...inspected,
  start: { kind: "checkpoint", folder: PRETRAINED },
};

const TARGETS = ["mlp.down_proj", "self_attn.q_proj"];
const adapted: EngineConfig = {
  ...pretrained,
  companions: {},
  adapters: {
    lora: resolveLora({ rank: 2, alpha: 8, targets: ["q_proj", "down_proj"] }),
    seed: 4,
    basePlace: PRETRAINED,
    exportedBase: { place: PRETRAINED },
  },
};

/** Engines that run in processes of their own start slowly. */
const SUITE_TIMEOUT_MS = 3_600_000;

function samplesOf(seed: number, count: number): TrainingSample[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const tokenIds = Array.from({ length: 12 }, (_, i) => (i < 6 ? i : random.nextInt(16)));
    const perToken = (value: () => number) => Array.from({ length: 4 }, value);
    return {
      tokenIds,
      lossMask: tokenIds.map((_, i) => (i < 8 ? 0 : 1)),
      inputs: {
        behaviourLogprob: perToken(() => -2 - random.next()),
        advantage: perToken(() => random.next() - 0.5),
      },
      weights: perToken(() => 1 / (4 * count)),
    };
  });
}

/** An update that uses everything that a loss may read, except a reference. */
export function minibatch(seed: number): Minibatch {
  return {
    samples: samplesOf(seed, 8),
    terms: [{ name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28 } }],
    entropyCoefficient: 0.01,
    optimizer: { ...ADAMW_DEFAULTS, learningRate: 0.01, weightDecay: 0.1 },
    maxGradNorm: 1,
  };
}

/** Declares the suite. */
export function testTrainingEngine(tested: EngineUnderTest): void {
  const { create, optimizer } = tested;

  async function withEngine<T>(
    use: (engine: TrainingEngine, folder: string) => Promise<T>,
    made: EngineConfig = freshModel,
  ): Promise<T> {
    const engine = create(made);
    const folder = await mkdtemp(path.join(os.tmpdir(), "hone-engine-"));
    try {
      return await use(engine, folder);
    } finally {
      await engine.close();
      await rm(folder, { recursive: true });
    }
  }

  describe(tested.name, { skip: tested.skip ?? false, timeout: SUITE_TIMEOUT_MS }, () => {
    test("imitation lowers the loss of the imitated samples", () =>
      withEngine(async (engine) => {
        await engine.initialise();
        const batch: Minibatch = { ...minibatch(1), terms: IMITATION_TERMS, entropyCoefficient: 0 };
        const losses: number[] = [];
        for (let i = 0; i < 30; i++) losses.push((await engine.trainMinibatch(batch)).loss);
        assert.ok(losses.at(-1)! < losses[0]! / 2, `${losses[0]} to ${losses.at(-1)}`);
      }));

    test("an update adds the cross-entropy of what it imitates to its loss", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        const supervised = samplesOf(3, 4);
        const { logprobs } = await engine.logprobs(supervised);
        await engine.save(path.join(folder, "first"));
        const alone = await engine.trainMinibatch(minibatch(1));
        assert.deepEqual(alone.supervisedLogprobs, []);
        await engine.load(path.join(folder, "first"));
        const both = await engine.trainMinibatch({ ...minibatch(1), supervised });
        assert.deepEqual(both.supervisedLogprobs, logprobs);
        assert.deepEqual(both.logprobs, alone.logprobs);
        const crossEntropy = -logprobs.reduce(
          (sum, values, i) =>
            values.reduce((total, value, token) => total + value * supervised[i]!.weights[token]!, sum),
          0,
        );
        assert.ok(Math.abs(both.loss - alone.loss - crossEntropy) < 1e-5, `${both.loss}, ${alone.loss}`);
        assert.notEqual(both.gradNorm, alone.gradNorm);
      }));

    test("the scores of an update are those that logprobs() gives before it", () =>
      withEngine(async (engine) => {
        await engine.initialise();
        const batch = minibatch(1);
        const scored = await engine.logprobs(batch.samples);
        const trained = await engine.trainMinibatch(batch);
        assert.deepEqual(trained.logprobs, scored.logprobs);
        assert.deepEqual(
          scored.logprobs.map((values) => values.length),
          batch.samples.map(() => 4),
        );
      }));

    test("sums of squared probabilities are those of all tokens that a position may have", () =>
      withEngine(async (engine) => {
        await engine.initialise();
        const samples = Array.from({ length: spec.vocabSize }, (_, token) => ({
          tokenIds: [1, 2, 3, token],
          lossMask: [0, 0, 0, 1],
          weights: [0],
        }));
        const temperature = 0.7;
        const { logprobs, squares } = await engine.logprobs(samples, { temperature, hasSquares: true });
        const expected = logprobs.reduce((sum, [logprob]) => sum + Math.exp(2 * logprob!), 0);
        assert.ok(expected > 1 / spec.vocabSize);
        for (const [found] of squares) assert.ok(Math.abs(found! - expected) < 1e-5, `${found}, ${expected}`);
        const { squares: notAsked } = await engine.logprobs(samples, { temperature });
        assert.deepEqual(new Set(notAsked.flatMap((each) => [...each])), new Set([0]));
      }));

    test("an engine that loads a saved state goes on bit for bit", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        await engine.trainMinibatch(minibatch(1));
        const saved = await engine.save(folder);
        await engine.trainMinibatch(minibatch(2));
        const straight = await engine.save(path.join(folder, "straight"));
        const resumed = await withEngine(async (other) => {
          await other.load(folder);
          await other.trainMinibatch(minibatch(2));
          return other.save(path.join(folder, "resumed"));
        });
        assert.equal(resumed.digest, straight.digest);
        assert.notEqual(saved.digest, straight.digest);
        const tokenizer = await readFile(path.join(folder, "resumed", "tokenizer.json"), "utf8");
        assert.equal(tokenizer, "{}");
      }));

    test("an engine that starts from a checkpoint trains it and exports files of the same layout", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        const copy = path.join(folder, "copy");
        await engine.exportTo(copy);
        const [source, copied] = await Promise.all([PRETRAINED, copy].map((at) => loadModel(at)));
        assert.deepEqual(copied, source);
        await engine.trainMinibatch(minibatch(1));
        const trained = path.join(folder, "trained");
        await engine.exportTo(trained);
        const { origin, weights } = await loadModel(trained);
        assert.deepEqual(origin, source!.origin);
        assert.notDeepEqual(weights["lm_head.weight"], source!.weights["lm_head.weight"]);
      }, pretrained));

    test("an engine that loads a checkpoint only to score with it needs no optimizer", () =>
      withEngine(async (engine) => {
        const samples = samplesOf(1, 3);
        await engine.load(PRETRAINED);
        const { logprobs } = await engine.logprobs(samples);
        await engine.initialise();
        assert.deepEqual((await engine.logprobs(samples)).logprobs, logprobs);
      }, pretrained));

    test("adapters are trained on an unchanged base, and go on bit for bit from a saved state", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        const base = await loadModel(PRETRAINED);
        const untrained = path.join(folder, "untrained");
        await engine.exportTo(untrained);
        assert.deepEqual((await loadMerged(untrained)).weights, base.weights);
        await engine.trainMinibatch(minibatch(1));
        const saved = await engine.save(folder);
        await engine.trainMinibatch(minibatch(2));
        const straight = await engine.save(path.join(folder, "straight"));
        const resumed = await withEngine(async (other) => {
          await other.load(folder);
          await other.trainMinibatch(minibatch(2));
          return other.save(path.join(folder, "resumed"));
        }, adapted);
        assert.equal(resumed.digest, straight.digest);
        assert.notEqual(saved.digest, straight.digest);
        const files = ["adapter_config.json", "adapter_model.safetensors", optimizer];
        assert.deepEqual((await readdir(path.join(folder, "straight"))).sort(), files);
        await engine.exportTo(path.join(folder, "export"));
        const merged = await loadMerged(path.join(folder, "export"));
        const changed = Object.keys(merged.weights).filter(
          (name) => !isDeepStrictEqual(merged.weights[name], base.weights[name]),
        );
        assert.deepEqual(
          changed.sort(),
          [0, 1].flatMap((layer) => TARGETS.map((part) => `model.layers.${layer}.${part}.weight`)),
        );
      }, adapted));

    for (const made of [freshModel, pretrained, adapted]) {
      const what = made.adapters === undefined ? made.start.kind : "adapters";
      test(`a reference does not change while the policy does: ${what}`, () =>
        withEngine(async (engine, folder) => {
          await engine.initialise();
          const { samples } = minibatch(3);
          await assert.rejects(engine.referenceLogprobs(samples), /no reference was loaded/);
          await engine.saveWeights(folder);
          await engine.loadReference(folder);
          const before = await engine.logprobs(samples);
          assert.deepEqual((await engine.referenceLogprobs(samples)).logprobs, before.logprobs);
          const batch = minibatch(1);
          const { logprobs } = await engine.referenceLogprobs(batch.samples);
          const near: Minibatch = {
            ...batch,
            samples: batch.samples.map((sample, i) => ({
              ...sample,
              inputs: { ...sample.inputs, referenceLogprob: logprobs[i]! },
            })),
            terms: [...batch.terms, { name: "kl_k3", constants: { coefficient: 0.1 } }],
          };
          await engine.trainMinibatch(near);
          await engine.trainMinibatch(near);
          assert.deepEqual((await engine.referenceLogprobs(samples)).logprobs, before.logprobs);
          assert.notDeepEqual((await engine.logprobs(samples)).logprobs, before.logprobs);
        }, made));
    }

    test("a state whose adapters have another base or another shape is refused", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        await engine.save(folder);
        const other = (adapters: EngineConfig["adapters"]): EngineConfig => ({
          ...adapted,
          adapters: adapters!,
        });
        const wider = resolveLora({ ...adapted.adapters!.lora, rank: 3 });
        await assert.rejects(
          withEngine((one) => one.load(folder), other({ ...adapted.adapters!, lora: wider })),
          /but those of the run are \{"rank":3/,
        );
        const copy = path.join(folder, "base");
        const model = await loadModel(PRETRAINED);
        model.weights["model.norm.weight"]![0]! += 1;
        await saveCheckpoint(copy, model);
        await assert.rejects(
          withEngine((one) => one.load(folder), { ...adapted, start: { kind: "checkpoint", folder: copy } }),
          /the adapters were trained on base weights with the SHA-256/,
        );
      }, adapted));

    test("a state of another model is refused with the field that differs", () =>
      withEngine(async (engine) => {
        await assert.rejects(
          engine.load(PRETRAINED),
          /the \w+ of the model in .* is .*, but that of the run is/,
        );
      }));

    test("the event loop goes on while the engine computes", () =>
      withEngine(async (engine) => {
        await engine.initialise();
        let isDone = false;
        const training = Promise.all([1, 2, 3, 4].map((seed) => engine.trainMinibatch(minibatch(seed)))).then(
          () => {
            isDone = true;
          },
        );
        let turns = 0;
        while (!isDone) {
          await new Promise((resolve) => setImmediate(resolve));
          turns++;
        }
        await training;
        assert.ok(turns > 100, `${turns} turns`);
      }));

    test("a call before initialise() is refused, and the engine works afterwards", () =>
      withEngine(async (engine) => {
        await assert.rejects(engine.trainMinibatch(minibatch(1)), (error) => {
          return error instanceof EngineCallError && error.code === "TRAINING_INPUT";
        });
        await engine.initialise();
        await engine.trainMinibatch(minibatch(1));
      }));

    test("numbers that are not finite leave the weights as they were", () =>
      withEngine(async (engine, folder) => {
        await engine.initialise();
        const before = await engine.save(folder);
        const batch = minibatch(1);
        const broken = batch.samples.map((sample) => ({
          ...sample,
          weights: [1e38, 1e38, 1e38, 1e38],
          inputs: { ...sample.inputs, advantage: [9, 9, 9, 9] },
        }));
        await assert.rejects(
          engine.trainMinibatch({ ...batch, samples: broken }),
          /weights were not updated/,
        );
        assert.equal((await engine.save(folder)).digest, before.digest);
      }));

    test("close() fails open calls and later ones, and may be called twice", async () => {
      const engine = create(freshModel);
      const open = assert.rejects(engine.initialise(), EngineLostError);
      await engine.close();
      await engine.close();
      await open;
      await assert.rejects(engine.initialise(), EngineLostError);
    });
  });
}
