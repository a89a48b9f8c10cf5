import assert from "node:assert/strict";
import { cp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadModel, saveAdapter, saveCheckpoint, saveValueModel } from "@hone/checkpoint";
import { RetryableError } from "@hone/core";
import { initialiseAdapters, initialiseWeights, LORA_TARGETS, resolveLora, resolveModelSpec } from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { loadTokenizer } from "@hone/tokenizer";
import { testConfig } from "../../testing/fake-run.ts";
import { RunFolders } from "../state/run-folders.ts";
import type { ModelSource } from "./model-source.ts";
import { prepareModel } from "./prepare-model.ts";
import { loadRunModel } from "./run-model.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../../examples/01-frozen-lake/", import.meta.url));
const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];

const spec = resolveModelSpec({ family: "llama", vocabSize: 32, hiddenSize: 8, numLayers: 1, numHeads: 2 });
const options = { signal: new AbortController().signal, onProgress: () => undefined };
const asIs: ModelSource = { folderOf: async ({ path: folder }) => folder };

describe("prepareModel()", () => {
  let temporary: Awaited<ReturnType<typeof temporaryFolder>>;
  let source: string;
  let folders: RunFolders;
  beforeEach(async () => {
    temporary = await temporaryFolder("prepare-model");
    source = path.join(temporary.path, "source");
    folders = new RunFolders(path.join(temporary.path, "state"), "test-1");
    await saveCheckpoint(source, { spec, weights: initialiseWeights(spec, 1), companions: {} });
    for (const name of TOKENIZER_FILES) await cp(path.join(EXAMPLE, name), path.join(source, name));
  });
  afterEach(() => temporary[Symbol.asyncDispose]());

  const prepare = (model: Record<string, unknown>, models = asIs) =>
    prepareModel(testConfig({ model }), folders, models, options);

  test("stores what later owners of the run need of a pretrained model", async () => {
    const config = testConfig({ model: { path: source, dtype: "bfloat16" } });
    const prepared = await prepareModel(config, folders, asIs, options);
    assert.equal(prepared.kind, "ready");
    await rm(source, { recursive: true });
    const tokenizer = await loadTokenizer(folders.absolute(folders.tokenizer));
    const model = await loadRunModel(config, folders, tokenizer);
    assert.deepEqual(model.spec, spec);
    assert.equal(model.origin?.folder, source);
    const types = model.origin.layout.shards.flatMap(({ tensors }) => tensors.map(({ type }) => type));
    assert.deepEqual(new Set(types), new Set(["BF16"]));
  });

  test("stores the base model of adapters with the run, and names it for states and for exports", async () => {
    const config = testConfig({ model: { path: source, lora: { rank: 2, targets: ["v_proj"] } } });
    const prepared = await prepareModel(config, folders, asIs, options);
    assert.equal(prepared.kind, "ready");
    const wanted = await loadModel(source);
    await rm(source, { recursive: true });
    const tokenizer = await loadTokenizer(folders.absolute(folders.tokenizer));
    const { adapters } = await loadRunModel(config, folders, tokenizer);
    assert.deepEqual((await loadModel(adapters!.base)).weights, wanted.weights);
    assert.equal(path.resolve(folders.absolute(folders.state(3, 1)), adapters!.basePlace), adapters!.base);
    assert.equal(path.resolve(folders.absolute(folders.reference), adapters!.basePlace), adapters!.base);
    assert.deepEqual(adapters!.exportedBase, { place: source });
    assert.deepEqual(adapters!.lora, { rank: 2, alpha: 16, targets: ["v_proj"] });
  });

  test("a run file can name every projection that adapters sit on", () => {
    const targets = Object.keys(LORA_TARGETS);
    const { model } = testConfig({ model: { path: source, lora: { rank: 1, targets } } });
    assert.deepEqual("path" in model && resolveLora(model.lora!).targets, targets);
  });

  test("takes a folder of adapters for the model that they are merged into", async () => {
    const base = await loadModel(source);
    const lora = resolveLora({ rank: 2, alpha: 2, targets: "all-linear" });
    const adapter = path.join(temporary.path, "adapter");
    await saveAdapter(adapter, {
      ...base,
      lora,
      weights: initialiseAdapters(spec, lora, 1),
      base: { place: "owner/name", revision: "v1" },
      baseDigest: base.digest,
    });
    const asked: unknown[] = [];
    const hub: ModelSource = {
      folderOf: async (model) => {
        if (model.path === adapter) return adapter;
        asked.push(model);
        return source;
      },
    };
    const config = testConfig({ model: { path: adapter } });
    assert.equal((await prepareModel(config, folders, hub, options)).kind, "ready");
    assert.deepEqual(asked, [{ path: "owner/name", revision: "v1" }]);
    const tokenizer = await loadTokenizer(folders.absolute(folders.tokenizer));
    assert.equal((await loadRunModel(config, folders, tokenizer)).origin?.base, source);
    const both = await prepare({ path: adapter, lora: { rank: 1 } }, hub);
    assert.ok(both.kind === "refused" && both.problems[0]?.key === "model.lora");
  });

  test("returns the configuration of a model that is made from scratch", async () => {
    const files = { "tokenizer.json": await readFile(path.join(EXAMPLE, "tokenizer.json"), "utf8") };
    const init = { architecture: "qwen3", hiddenSize: 8, numLayers: 1, numHeads: 2, tokenizer: { files } };
    const prepared = await prepare({ init });
    assert.equal(prepared.kind === "ready" && prepared.config.vocab_size, 32);
  });

  const refusals: [what: string, change: () => Promise<void>, message: RegExp][] = [
    [
      "damaged weights",
      () => truncate(path.join(source, "model.safetensors"), 2_000),
      /end within the file of 2000 bytes/,
    ],
    ["a missing tokenizer", () => rm(path.join(source, "tokenizer.json")), /must hold tokenizer.json/],
    [
      "a model without a chat template",
      () => rm(path.join(source, "chat_template.jinja")),
      /must have a chat template/,
    ],
    [
      "no end of a turn",
      () => writeFile(path.join(source, "tokenizer_config.json"), "{}"),
      /names an eos_token/,
    ],
    [
      "an unknown class",
      () => writeFile(path.join(source, "config.json"), '{"architectures": ["GPT2LMHeadModel"]}'),
      /GPT2LMHeadModel.*LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM/,
    ],
    [
      "a critic",
      async () => {
        await saveValueModel(source, source);
      },
      /a language model, and this one classifies tokens/,
    ],
  ];
  for (const [what, change, message] of refusals) {
    test(`refuses ${what} and names the key of the run file`, async () => {
      await change();
      const prepared = await prepare({ path: source });
      assert.ok(prepared.kind === "refused");
      assert.equal(prepared.problems[0]?.key, "model.path");
      assert.match(prepared.problems[0].message, message);
    });
  }

  test("a failure that may pass is thrown and does not refuse the run", async () => {
    const away: ModelSource = {
      folderOf: () => Promise.reject(new RetryableError("AWAY", "the hub cannot be reached")),
    };
    await assert.rejects(prepare({ path: "owner/name" }, away), RetryableError);
  });
});
