import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ElementType, type LoadedModel, loadModel, saveCheckpoint } from "@hone/checkpoint";
import {
  configFromSpec,
  EMBEDDING,
  HEAD,
  initialiseWeights,
  listParameters,
  resolveModelSpec,
} from "@hone/nn";
import { temporaryFolder } from "@hone/testing";

const TIMEOUT_MS = 60_000;

function untie(...args: string[]) {
  const ran = spawnSync(process.execPath, [path.join(import.meta.dirname, "untie.ts"), ...args], {
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  return { code: ran.status, output: `${ran.stdout}${ran.stderr}` };
}

describe("npm run untie", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let source: LoadedModel;
  let untied: LoadedModel;
  const at = (name: string) => path.join(folder.path, name);

  before(async () => {
    folder = await temporaryFolder("untie");
    const spec = resolveModelSpec({
      family: "llama",
      vocabSize: 32,
      hiddenSize: 16,
      numLayers: 2,
      numHeads: 4,
      isTied: true,
    });
    const types = [ElementType.BF16, ElementType.F32];
    const tensors = listParameters(spec).map(({ name }, i) => ({ name, type: types[i % types.length]! }));
    const shards = [tensors.slice(0, 7), tensors.slice(7)].map((part, i) => ({
      file: `model-0000${i + 1}-of-00002.safetensors`,
      tensors: part,
    }));
    const origin = { config: { ...configFromSpec(spec), strange: [1, 2] }, layout: { shards } };
    const companions = { "tokenizer.json": "{}" };
    await saveCheckpoint(at("tied"), { spec, weights: initialiseWeights(spec, 3), companions, origin });
    const { code, output } = untie(at("tied"), at("untied"));
    assert.equal(code, 0, output);
    source = await loadModel(at("tied"));
    untied = await loadModel(at("untied"));
  });
  after(() => folder?.[Symbol.asyncDispose]());

  test("writes the same numbers, and the embedding's as the head", () => {
    const { [HEAD]: head, ...others } = untied.weights;
    assert.deepEqual(others, source.weights);
    assert.deepEqual(head, source.weights[EMBEDDING]);
  });

  test("changes nothing else: shards, types, configuration, files", async () => {
    assert.deepEqual(await readdir(at("untied")), await readdir(at("tied")));
    assert.deepEqual(untied.companions, source.companions);
    const { tie_word_embeddings: isTied, ...config } = untied.origin.config;
    const { tie_word_embeddings: wasTied, ...before } = source.origin.config;
    assert.deepEqual([wasTied, isTied, config], [true, false, before]);
    const [first, ...rest] = untied.origin.layout.shards;
    const [sourceFirst, ...sourceRest] = source.origin.layout.shards;
    assert.deepEqual(rest, sourceRest);
    const head = { name: HEAD, type: sourceFirst!.tensors[0]!.type };
    assert.deepEqual(first?.tensors, [...sourceFirst!.tensors, head]);
  });

  const refusals: [what: string, args: () => string[], code: number, message: RegExp][] = [
    ["a folder that is missing", () => [at("tied")], 2, /FOLDER is missing/],
    ["a model with a head of its own", () => [at("untied"), at("again")], 1, /has a head of its own already/],
    ["a folder that holds something", () => [at("tied"), at("untied")], 1, /must be new or empty/],
  ];
  for (const [what, args, code, message] of refusals) {
    test(`refuses ${what}`, () => {
      const refused = untie(...args());
      assert.equal(refused.code, code, refused.output);
      assert.match(refused.output, message);
    });
  }
});
