import assert from "node:assert/strict";
import path from "node:path";
import { describe, test } from "node:test";
import {
  EMBEDDING,
  HEAD,
  initialiseAdapters,
  initialiseWeights,
  resolveLora,
  resolveModelSpec,
  VALUE_BIAS,
  VALUE_HEAD,
} from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { saveAdapter } from "./adapter.ts";
import { loadModel, saveCheckpoint } from "./checkpoint.ts";
import { digestOfMerged, loadMerged } from "./merged-model.ts";
import { saveValueModel } from "./value-model.ts";

const shape = { vocabSize: 16, hiddenSize: 8, numLayers: 1, numHeads: 2, headDim: 4 };

describe("saveValueModel()", () => {
  for (const isTied of [true, false]) {
    test(`puts a value head of zeros in the place of ${isTied ? "a tied head" : "a head of its own"}`, async () => {
      await using folder = await temporaryFolder("value-model");
      const at = (name: string) => path.join(folder.path, name);
      const spec = resolveModelSpec({ ...shape, isTied });
      const weights = initialiseWeights(spec, 1);
      await saveCheckpoint(at("policy"), { spec, weights, companions: { "tokenizer.json": "{}" } });
      await saveValueModel(at("policy"), at("critic"));
      const critic = await loadModel(at("critic"));
      assert.deepEqual(critic.spec, { ...spec, head: "value", isTied: false });
      assert.deepEqual(critic.weights[EMBEDDING], weights[EMBEDDING]);
      assert.equal(critic.weights[HEAD], undefined);
      assert.deepEqual(critic.weights[VALUE_HEAD], new Float32Array(8));
      assert.deepEqual(critic.weights[VALUE_BIAS], new Float32Array(1));
      assert.deepEqual(critic.companions, { "tokenizer.json": "{}" });
    });
  }

  test("merges adapters into their base, which a state names relative to its own folder", async () => {
    await using folder = await temporaryFolder("value-model");
    const at = (name: string) => path.join(folder.path, name);
    const spec = resolveModelSpec(shape);
    const lora = resolveLora({ rank: 2, alpha: 4, targets: ["q_proj"] });
    await saveCheckpoint(at("base"), { spec, weights: initialiseWeights(spec, 1), companions: {} });
    const weights = Object.fromEntries(
      Object.entries(initialiseAdapters(spec, lora, 2)).map(([name, each]) => [name, each.map(() => 0.5)]),
    );
    await saveAdapter(at("state"), {
      spec,
      lora,
      weights,
      companions: {},
      baseDigest: await digestOfMerged(at("base")),
      base: { place: "../base" },
    });
    await saveValueModel(at("state"), at("state/critic"));
    const merged = await loadMerged(at("state"));
    const critic = await loadModel(at("state/critic"));
    const name = "model.layers.0.self_attn.q_proj.weight";
    assert.deepEqual(critic.weights[name], merged.weights[name]);
    assert.notDeepEqual(critic.weights[name], initialiseWeights(spec, 1)[name]);
  });
});
