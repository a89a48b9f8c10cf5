/** The behaviour that the engine of every critic must have: each implementation runs this suite in a test file of its own. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { inspectModel, loadModel, saveCheckpoint, valueSpecOf } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights, VALUE_HEAD } from "@hone/nn";
import { valueTerm } from "@hone/rl";
import { temporaryFolder } from "@hone/testing";
import { ADAMW_DEFAULTS, type TrainingSample } from "@hone/train";
import type { EngineConfig } from "../../engine/engine-config.ts";
import { ValueEngine } from "../../engine/value-engine.ts";
import { freshModel } from "../step/training-engine.suite.ts";
import type { TrainingEngine } from "../step/training-engine.ts";
import type { ValueMinibatch, ValueResult } from "./critic-engine.ts";

/** An implementation under test. */
export interface CriticUnderTest {
  readonly name: string;
  readonly create: (config: EngineConfig) => TrainingEngine;
  /** Why it cannot be tested on this machine; absent or false = it can. */
  readonly skip?: string | false;
}

/** Engines that run in processes of their own start slowly. */
const SUITE_TIMEOUT_MS = 3_600_000;
const LEARNING_RATE = 0.01;

const critic: EngineConfig = { ...freshModel, spec: valueSpecOf(freshModel.spec) };

/** A return depends on the token before it alone, so that a critic can learn it. */
function samplesOf(seed: number): TrainingSample[] {
  const random = new Random(seed);
  return Array.from({ length: 8 }, () => {
    const tokenIds = Array.from({ length: 10 }, (_, i) => (i < 4 ? i : random.nextInt(16)));
    const trained = [5, 7, 9];
    return {
      tokenIds,
      lossMask: tokenIds.map((_, i) => Number(trained.includes(i))),
      inputs: {
        oldValue: trained.map(() => random.next() - 0.5),
        return: trained.map((at) => tokenIds[at - 1]! / 16),
      },
      weights: trained.map(() => 1 / 24),
    };
  });
}

function minibatch(seed: number, clip: number | null = null): ValueMinibatch {
  const optimizer = { ...ADAMW_DEFAULTS, learningRate: LEARNING_RATE };
  return { samples: samplesOf(seed), term: valueTerm({ clip }), optimizer, maxGradNorm: 1 };
}

/** The folder of a policy that was made from scratch. */
async function policyIn(folder: string): Promise<string> {
  const { spec, companions } = freshModel;
  await saveCheckpoint(folder, { spec, weights: initialiseWeights(spec, 3), companions });
  return folder;
}

/** Declares the suite. */
export function testCriticEngine({ name, create, skip }: CriticUnderTest): void {
  async function withCritic<T>(use: (engine: ValueEngine, folder: string) => Promise<T>): Promise<T> {
    await using folder = await temporaryFolder("critic");
    const engine = new ValueEngine(create(critic));
    try {
      const first = path.join(folder.path, "first");
      await engine.saveFirst(await policyIn(path.join(folder.path, "policy")), first);
      await engine.load(first);
      return await use(engine, folder.path);
    } finally {
      await engine.close();
    }
  }

  describe(`a critic on ${name}`, { skip: skip ?? false, timeout: SUITE_TIMEOUT_MS }, () => {
    test("begins with the policy's layers and expects 0 everywhere", () =>
      withCritic(async (engine, folder) => {
        const { spec, weights } = await loadModel(path.join(folder, "first"));
        assert.deepEqual(spec, critic.spec);
        const { weights: policy } = await loadModel(path.join(folder, "policy"));
        const layers = Object.keys(policy);
        assert.ok(layers.length > 10);
        for (const each of layers) assert.deepEqual(weights[each], policy[each], each);
        const values = await engine.values(samplesOf(1));
        assert.deepEqual([values.length, new Set(values.flatMap((each) => [...each]))], [8, new Set([0])]);
      }));

    test("begins with the layers of a model of its own where it has one", async () => {
      await using folder = await temporaryFolder("critic");
      const { spec, companions } = freshModel;
      const own = path.join(folder.path, "own");
      await saveCheckpoint(own, { spec, weights: initialiseWeights(spec, 4), companions });
      const engine = new ValueEngine(create(critic), own);
      try {
        await engine.saveFirst(
          await policyIn(path.join(folder.path, "policy")),
          path.join(folder.path, "first"),
        );
        const [first, model] = await Promise.all(
          ["first", "own"].map((name) => loadModel(path.join(folder.path, name))),
        );
        for (const each of Object.keys(model!.weights)) {
          assert.deepEqual(first!.weights[each], model!.weights[each], each);
        }
      } finally {
        await engine.close();
      }
    });

    test("learns returns that the tokens tell", () =>
      withCritic(async (engine) => {
        const losses: number[] = [];
        for (let update = 0; update < 60; update++) {
          losses.push((await engine.trainMinibatch(minibatch(1))).loss);
        }
        assert.ok(losses.at(-1)! < losses[0]! / 20, `from ${losses[0]} to ${losses.at(-1)}`);
        const values = await engine.values(samplesOf(1));
        const returns = samplesOf(1).map(({ inputs }) => Array.from(inputs!.return!));
        values.forEach((ofSample, i) => {
          ofSample.forEach((value, token) => {
            assert.ok(Math.abs(value - returns[i]![token]!) < 0.25);
          });
        });
      }));

    test("goes on from a saved state with the same bits, its optimizer included", () =>
      withCritic(async (engine, folder) => {
        await engine.trainMinibatch(minibatch(1, 0.2));
        await engine.save(path.join(folder, "between"));
        const straight = await engine.trainMinibatch(minibatch(2, 0.2));
        await engine.save(path.join(folder, "straight"));
        await engine.load(path.join(folder, "between"));
        const again = await engine.trainMinibatch(minibatch(2, 0.2));
        await engine.save(path.join(folder, "again"));
        assert.deepEqual(again, straight);
        const [a, b] = await Promise.all(
          ["straight", "again"].map((at) => readFile(path.join(folder, at, "model.safetensors"))),
        );
        assert.deepEqual(a, b);
      }));

    test("writes a folder that names itself a classifier of tokens with one label", () =>
      withCritic(async (engine, folder) => {
        await engine.save(path.join(folder, "state"));
        const { origin, spec } = await inspectModel(path.join(folder, "state"));
        assert.equal(spec.head, "value");
        assert.deepEqual(origin.config.architectures, ["Qwen3ForTokenClassification"]);
        assert.deepEqual(origin.config.id2label, { 0: "LABEL_0" });
        const { weights } = await loadModel(path.join(folder, "state"));
        assert.equal(weights[VALUE_HEAD]!.length, spec.hiddenSize);
      }));
  });
}

/** What updates of a critic that begins as the suite's compute, for comparing engines. */
export async function criticUpdates(
  engine: TrainingEngine,
  folder: string,
  count: number,
): Promise<ValueResult[]> {
  const valueEngine = new ValueEngine(engine);
  const first = path.join(folder, "first");
  await valueEngine.saveFirst(await policyIn(path.join(folder, "policy")), first);
  await valueEngine.load(first);
  const results: ValueResult[] = [];
  for (let update = 1; update <= count; update++) {
    results.push(await valueEngine.trainMinibatch(minibatch(update, 0.2)));
  }
  return results;
}

/** The configuration of the suite's critic. */
export const suiteCritic = critic;
