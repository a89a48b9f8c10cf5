import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { loadModel, saveCheckpoint } from "./checkpoint.ts";
import { MODEL_FILE } from "./checkpoint-layout.ts";
import { CheckpointError } from "./errors.ts";
import { loadOptimizer } from "./optimizer-file.ts";
import { initialiseAdamW } from "./optimizer-state.ts";

const spec = resolveModelSpec({ vocabSize: 11, hiddenSize: 8, numLayers: 2, numHeads: 2, eosTokenIds: [3] });
const companions = { "tokenizer.json": '{"a": 1}', "chat_template.jinja": "{{ x }}" };

describe("checkpoints", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), "hone-checkpoint-"));
  });
  after(() => rm(folder, { recursive: true }));

  test("loading returns the saved model, companion files and optimizer unchanged", async () => {
    const weights = initialiseWeights(spec, 4);
    const optimizer = initialiseAdamW(listParameters(spec));
    optimizer.step = 17;
    optimizer.m["model.norm.weight"]!.fill(0.25);
    const saved = await saveCheckpoint(folder, { spec, weights, companions }, optimizer);
    const model = await loadModel(folder);
    assert.deepEqual(model.spec, spec);
    assert.deepEqual(model.weights, weights);
    assert.deepEqual(model.companions, companions);
    assert.deepEqual(await loadOptimizer(folder, listParameters(spec)), optimizer);
    const file = await readFile(path.join(folder, MODEL_FILE));
    assert.equal(saved.digest, createHash("sha256").update(file).digest("hex"));
    assert.equal(model.digest, saved.digest);
  });

  test("the optimizer of a folder without one is undefined", async () => {
    const other = path.join(folder, "export");
    await saveCheckpoint(other, { spec, weights: initialiseWeights(spec, 4), companions });
    assert.equal(await loadOptimizer(other, listParameters(spec)), undefined);
  });

  test("weights that do not fit the configuration are rejected with their name and shape", async () => {
    const other = path.join(folder, "misfit");
    await saveCheckpoint(other, { spec, weights: initialiseWeights(spec, 4), companions });
    const config = JSON.parse(await readFile(path.join(other, "config.json"), "utf8")) as Record<
      string,
      unknown
    >;
    await writeFile(path.join(other, "config.json"), JSON.stringify({ ...config, vocab_size: 12 }));
    await assert.rejects(
      loadModel(other),
      /model.embed_tokens.weight must have the shape \[12, 8\], but has the shape \[11, 8\]/,
    );
  });

  for (const name of ["config.json", "tokenizer.json", "model.safetensors.index.json"]) {
    test(`a ${name} that would fill memory is rejected before it is read`, async () => {
      const other = path.join(folder, `huge-${name}`);
      await saveCheckpoint(other, { spec, weights: initialiseWeights(spec, 4), companions });
      if (name.endsWith("index.json")) await rename(path.join(other, MODEL_FILE), path.join(other, name));
      await truncate(path.join(other, name), 20 * 1024 ** 3);
      await assert.rejects(loadModel(other), (error) => {
        assert.ok(error instanceof CheckpointError);
        const rule = new RegExp(`${name}: the file has 21474836480 bytes; at most 134217728 are allowed`);
        assert.match(error.message, rule);
        return true;
      });
      await rm(other, { recursive: true });
    });
  }

  test("loading from a missing folder is a CheckpointError", async () => {
    await assert.rejects(loadModel(path.join(folder, "nowhere")), CheckpointError);
  });
});
