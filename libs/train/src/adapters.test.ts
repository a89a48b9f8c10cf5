/** Compares adapters with PEFT: loss, gradients, merged weights, and the folders that are read and written. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { cp, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import {
  initialiseAdamW,
  inspectAdapter,
  inspectMerged,
  loadAdapter,
  loadMerged,
  loadModel,
  loadOptimizer,
  saveAdapter,
} from "@hone/checkpoint";
import { readTensors } from "@hone/checkpoint/testing";
import { initialiseAdapters, listAdapterParameters, resolveLora } from "@hone/nn";
import { IMITATION_TERMS } from "@hone/rl";
import { temporaryFolder } from "@hone/testing";
import { GradientRunner } from "./gradient-runner.ts";

/** Folders made by fixtures/make_adapters.py; the families that they adapt are beside them. */
const FIXTURES = path.join(import.meta.dirname, "../../checkpoint/fixtures");
const ADAPTERS = path.join(FIXTURES, "adapters");
const MAX_LOSS_ERROR = 1e-5;
/** |found - wanted| / |wanted|, Euclidean. */
const MAX_GRADIENT_ERROR = 1e-4;
/** The error of one product and one sum in float32. */
const MAX_MERGE_ERROR = 1e-6;

interface Reference {
  readonly family: string;
  readonly tokens: number[][];
  readonly loss: number;
}

async function fixture(name: string) {
  const folder = path.join(ADAPTERS, name);
  const reference = JSON.parse(await readFile(path.join(folder, "reference.json"), "utf8")) as Reference;
  const tensors = await readTensors(path.join(folder, "reference.safetensors"));
  const base = await loadModel(path.join(FIXTURES, "families", reference.family));
  const adapter = await loadAdapter(folder, base.spec);
  return { folder, reference, tensors, base, adapter };
}

function relativeError(found: Float32Array, wanted: Float32Array): number {
  assert.equal(found.length, wanted.length);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value * value, 0);
  return Math.sqrt(sum(found.map((value, i) => value - wanted[i]!)) / sum(wanted));
}

function samplesOf(tokens: number[][]) {
  const count = tokens.reduce((sum, row) => sum + row.length - 1, 0);
  return tokens.map((tokenIds) => ({
    tokenIds,
    lossMask: tokenIds.map((_, i) => (i === 0 ? 0 : 1)),
    weights: new Float32Array(tokenIds.length - 1).fill(1 / count),
  }));
}

const LIMITS = { maxRowTokens: 128, maxMicrobatchTokens: 256 };
const CROSS_ENTROPY = { terms: IMITATION_TERMS, entropyCoefficient: 0 };

describe("adapters", () => {
  for (const name of readdirSync(ADAPTERS)) {
    test(`${name}: loss and gradients equal PEFT's, and the base model has no gradients`, async () => {
      const { reference, tensors, base, adapter } = await fixture(name);
      const runner = new GradientRunner(base.spec, { ...LIMITS, lora: adapter.lora });
      const weights = { ...base.weights, ...adapter.weights };
      const found = await runner.differentiate(weights, samplesOf(reference.tokens), CROSS_ENTROPY);
      await runner.close();
      assert.ok(Math.abs(found.loss - reference.loss) < MAX_LOSS_ERROR, `${found.loss}`);
      const wanted = [...tensors.keys()].filter((key) => key.startsWith("g.")).map((key) => key.slice(2));
      assert.deepEqual(Object.keys(found.gradients).sort(), wanted.sort());
      for (const [parameter, gradient] of Object.entries(found.gradients)) {
        const error = relativeError(gradient, tensors.get(`g.${parameter}`)!);
        assert.ok(error < MAX_GRADIENT_ERROR, `${parameter}: ${error}`);
      }
    });

    test(`${name}: merged weights equal PEFT's and give the same scores as separate adapters`, async () => {
      const { folder, reference, tensors, base, adapter } = await fixture(name);
      const merged = await loadMerged(folder);
      for (const [key, wanted] of tensors) {
        if (!key.startsWith("m.")) continue;
        const error = relativeError(merged.weights[key.slice(2)]!, wanted);
        assert.ok(error < MAX_MERGE_ERROR, `${key}: ${error}`);
      }
      const scoreWith = async (weights: typeof base.weights, lora: typeof adapter.lora | undefined) => {
        const runner = new GradientRunner(base.spec, { ...LIMITS, lora });
        const scored = await runner.score(weights, samplesOf(reference.tokens));
        await runner.close();
        return scored.scores;
      };
      const beside = await scoreWith({ ...base.weights, ...adapter.weights }, adapter.lora);
      const inside = await scoreWith(merged.weights, undefined);
      assert.ok(relativeError(inside, beside) < 1e-5);
    });
  }

  test("a folder that Hone wrote is read back with the same bits, base and optimizer", async () => {
    await using scratch = await temporaryFolder("adapters");
    const { base, adapter } = await fixture("qwen3-all");
    const optimizer = initialiseAdamW(listAdapterParameters(base.spec, adapter.lora));
    optimizer.step = 3;
    const reference = { place: path.join(FIXTURES, "families/qwen3"), revision: "main" };
    const companions = { "tokenizer.json": "{}" };
    const state = { ...base, ...adapter, base: reference, baseDigest: base.digest, companions };
    const saved = await saveAdapter(scratch.path, state, optimizer);
    const loaded = await loadAdapter(scratch.path, base.spec);
    assert.deepEqual(loaded, {
      lora: adapter.lora,
      base: reference,
      baseDigest: base.digest,
      weights: adapter.weights,
      digest: saved.digest,
    });
    const parameters = listAdapterParameters(base.spec, adapter.lora);
    assert.deepEqual(await loadOptimizer(scratch.path, parameters), optimizer);
    const merged = await loadMerged(scratch.path);
    assert.deepEqual(merged.weights, (await loadMerged(path.join(ADAPTERS, "qwen3-all"))).weights);
    assert.deepEqual((await inspectMerged(scratch.path)).companions, companions);
  });

  test("a base model other than the one that the adapters were trained on is refused", async () => {
    await using scratch = await temporaryFolder("adapters");
    const { base, adapter } = await fixture("qwen3-all");
    const place = path.join(FIXTURES, "families/qwen3-biased");
    const state = { ...base, ...adapter, base: { place }, baseDigest: base.digest };
    await saveAdapter(scratch.path, state);
    await assert.rejects(
      loadMerged(scratch.path),
      /trained on base weights with the SHA-256 \S+, but the base model here has/,
    );
  });

  test("a new adapter changes no scores, and its values depend on the seed but not on the targets", async () => {
    const { base } = await fixture("qwen3-all");
    const lora = resolveLora({ rank: 2, alpha: 4, targets: "all-linear" });
    const fresh = initialiseAdapters(base.spec, lora, 5);
    const samples = samplesOf([[1, 2, 3, 4, 5, 6, 7]]);
    const runner = new GradientRunner(base.spec, { ...LIMITS, lora });
    const plain = new GradientRunner(base.spec, LIMITS);
    const [adapted, without] = [
      await runner.score({ ...base.weights, ...fresh }, samples),
      await plain.score(base.weights, samples),
    ];
    await runner.close();
    await plain.close();
    assert.deepEqual(adapted.scores, without.scores);
    const narrower = initialiseAdapters(base.spec, resolveLora({ ...lora, targets: ["v_proj"] }), 5);
    for (const [name, values] of Object.entries(narrower)) assert.deepEqual(values, fresh[name]);
    assert.notDeepEqual(initialiseAdapters(base.spec, lora, 6), fresh);
    const [first] = Object.values(fresh);
    assert.ok(Math.max(...first!) <= 1 / 4 && Math.max(...first!) > 0.2, "within 1 / sqrt(16)");
  });

  const refused: [what: string, change: Record<string, unknown>, message: RegExp][] = [
    [
      "another kind of adapter",
      { peft_type: "IA3" },
      /peft_type is "IA3"; Hone reads only adapters where it is "LORA"/,
    ],
    [
      "a computation that Hone does not build",
      { use_dora: true },
      /use_dora is true; Hone reads only adapters where it is absent/,
    ],
    ["ranks of their own", { rank_pattern: { q_proj: 3 } }, /rank_pattern is \{"q_proj":3\}; .* absent/],
    [
      "first values that change the base",
      { init_lora_weights: "pissa" },
      /init_lora_weights is "pissa"; .* is true, false or "gaussian"/,
    ],
    [
      "no base",
      { base_model_name_or_path: null },
      /base_model_name_or_path is null; .* names the base model/,
    ],
    ["another rank", { r: 5 }, /must have the shape \[5, \d+\], but has the shape \[4, \d+\]/],
    [
      "a base that is not here",
      { base_model_name_or_path: "owner/name" },
      /base model of these adapters, "owner\/name", is not a folder/,
    ],
  ];
  for (const [what, change, message] of refused) {
    test(`${what} is refused with the name of its field`, async () => {
      await using scratch = await temporaryFolder("adapters");
      const folder = path.join(scratch.path, "adapter");
      await cp(path.join(ADAPTERS, "qwen3-all"), folder, { recursive: true });
      const file = path.join(folder, "adapter_config.json");
      const config = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
      const base = { base_model_name_or_path: path.join(FIXTURES, "families/qwen3") };
      await writeFile(file, JSON.stringify({ ...config, ...base, ...change }));
      await assert.rejects(loadMerged(folder), message);
    });
  }

  test("findBase() gets the base model's name and returns its folder", async () => {
    const folder = path.join(ADAPTERS, "qwen3-all");
    assert.equal((await inspectAdapter(folder)).base.place, "../../families/qwen3");
    await using scratch = await temporaryFolder("adapters");
    const copy = path.join(scratch.path, "adapter");
    await cp(folder, copy, { recursive: true });
    const file = path.join(copy, "adapter_config.json");
    const config = (await readFile(file, "utf8")).replace("../../families/qwen3", "owner/name");
    await writeFile(file, config);
    const asked: unknown[] = [];
    await loadMerged(copy, {
      findBase: async (base) => {
        asked.push(base);
        return path.join(FIXTURES, "families/qwen3");
      },
    });
    assert.deepEqual(asked, [{ place: "owner/name" }]);
  });
});
