/** Compares checkpoints of every family with transformers: loss, gradients, and exported files. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, truncate, unlink, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CheckpointError, INDEX_FILE, loadModel, saveCheckpoint } from "@hone/checkpoint";
import { readTensors } from "@hone/checkpoint/testing";
import { IMITATION_TERMS } from "@hone/rl";
import { GradientRunner } from "./gradient-runner.ts";

/** Folders made by fixtures/make_families.py. */
const FAMILIES = path.join(import.meta.dirname, "../../checkpoint/fixtures/families");
const MAX_LOSS_ERROR = 1e-5;
/** Limit for a parameter's gradient: |found - wanted| / |wanted|, Euclidean. */
const MAX_GRADIENT_ERROR = 1e-4;
const SHARDED = "llama-scaled-biased";

interface Reference {
  readonly tokens: number[][];
  readonly loss: number;
}

let scratch = "";
before(async () => {
  scratch = await mkdtemp(path.join(os.tmpdir(), "hone-families-"));
});
after(() => rm(scratch, { recursive: true }));

function relativeError(found: Float32Array, wanted: Float32Array): number {
  assert.equal(found.length, wanted.length);
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value * value, 0);
  return Math.sqrt(sum(found.map((value, i) => value - wanted[i]!)) / sum(wanted));
}

describe("pretrained checkpoints", () => {
  for (const name of readdirSync(FAMILIES)) {
    const folder = path.join(FAMILIES, name);

    test(`${name}: loss and gradients equal PyTorch's`, async () => {
      const { tokens, loss } = JSON.parse(
        await readFile(path.join(folder, "reference.json"), "utf8"),
      ) as Reference;
      const reference = await readTensors(path.join(folder, "reference.safetensors"));
      const { spec, weights } = await loadModel(folder);
      const count = tokens.reduce((sum, row) => sum + row.length - 1, 0);
      const samples = tokens.map((tokenIds) => ({
        tokenIds,
        lossMask: tokenIds.map((_, i) => (i === 0 ? 0 : 1)),
        weights: new Float32Array(tokenIds.length - 1).fill(1 / count),
      }));
      const runner = new GradientRunner(spec, { maxRowTokens: 128, maxMicrobatchTokens: 256 });
      const found = await runner.differentiate(weights, samples, {
        terms: IMITATION_TERMS,
        entropyCoefficient: 0,
      });
      await runner.close();
      assert.ok(Math.abs(found.loss - loss) < MAX_LOSS_ERROR, `${found.loss} is not ${loss}`);
      assert.deepEqual(
        Object.keys(found.gradients).sort(),
        [...reference.keys()]
          .filter((key) => key !== "logits")
          .map((key) => key.slice(2))
          .sort(),
      );
      for (const [parameter, gradient] of Object.entries(found.gradients)) {
        const error = relativeError(gradient, reference.get(`g.${parameter}`)!);
        assert.ok(error < MAX_GRADIENT_ERROR, `${parameter}: ${error}`);
      }
    });

    test(`${name}: an export of the loaded model has the same files`, async () => {
      const copy = path.join(scratch, name);
      await saveCheckpoint(copy, await loadModel(folder));
      const isModel = (file: string) => !file.startsWith("reference");
      assert.deepEqual((await readdir(copy)).sort(), (await readdir(folder)).filter(isModel).sort());
      for (const file of await readdir(copy)) {
        const [written, original] = await Promise.all(
          [copy, folder].map((at) => readFile(path.join(at, file))),
        );
        if (file === "config.json") {
          assert.deepEqual(JSON.parse(String(written)), JSON.parse(String(original)));
        } else if (file === INDEX_FILE) {
          const { weight_map: map } = JSON.parse(String(original)) as { weight_map: unknown };
          assert.deepEqual((JSON.parse(String(written)) as { weight_map: unknown }).weight_map, map);
        } else {
          const bytes = (from: Buffer) => from.subarray(8 + Number(from.readBigUInt64LE()));
          assert.ok(bytes(written!).equals(bytes(original!)), file);
        }
      }
    });
  }

  const broken: [what: string, change: (folder: string) => Promise<void>, message: RegExp][] = [
    [
      "a shard that is missing",
      (folder) => unlink(path.join(folder, "model-00002-of-00003.safetensors")),
      /model-00002-of-00003.safetensors: the file cannot be opened \(ENOENT/,
    ],
    [
      "a shard that is cut",
      (folder) => truncate(path.join(folder, "model-00001-of-00003.safetensors"), 5000),
      /model-00001-of-00003.safetensors: the data of tensor \S+ must begin at byte \d+ and end within the file of 5000 bytes, but/,
    ],
    [
      "a tensor that is missing",
      async (folder) => {
        const index = JSON.parse(await readFile(path.join(folder, INDEX_FILE), "utf8")) as {
          weight_map: Record<string, string>;
        };
        const last = index.weight_map["lm_head.weight"]!;
        for (const [name, file] of Object.entries(index.weight_map)) {
          if (file === last) index.weight_map[name] = "model-00002-of-00003.safetensors";
        }
        await writeFile(path.join(folder, INDEX_FILE), JSON.stringify(index));
      },
      /model-00002-of-00003.safetensors: tensor \S+ must have the shape \[.*\], but is missing/,
    ],
    [
      "a shape of another model",
      (folder) => changeConfig(folder, { intermediate_size: 23 }),
      /model-0000.-of-00003.safetensors: tensor model.layers.0.mlp.\S+ must have the shape \[.*23.*\], but has the shape \[.*24/,
    ],
    [
      "a tensor that the model does not have",
      (folder) => changeConfig(folder, { mlp_bias: false }),
      /contains tensor model.layers.0.mlp.\w+.bias, which this llama model does not have/,
    ],
    [
      "an unknown architecture",
      (folder) => changeConfig(folder, { architectures: ["MambaForCausalLM"] }),
      /MambaForCausalLM.*LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM/,
    ],
    [
      "an index that points outside",
      (folder) =>
        writeFile(path.join(folder, INDEX_FILE), JSON.stringify({ weight_map: { x: "../x.safetensors" } })),
      /must name for each tensor a .safetensors file of the same folder, but contains .*\.\.\/x/,
    ],
    [
      "weights of another format",
      async (folder) => {
        await unlink(path.join(folder, INDEX_FILE));
        await writeFile(path.join(folder, "pytorch_model.bin"), "");
      },
      /must contain model.safetensors or model.safetensors.index.json, but has only .*pytorch_model.bin/,
    ],
  ];
  for (const [what, change, message] of broken) {
    test(`${what} is refused with file and name`, async () => {
      const folder = path.join(scratch, "broken");
      await rm(folder, { recursive: true, force: true });
      await cp(path.join(FAMILIES, SHARDED), folder, { recursive: true });
      await change(folder);
      await assert.rejects(loadModel(folder), message);
    });
  }

  test("loading from a missing folder is a CheckpointError", async () => {
    await assert.rejects(loadModel(path.join(scratch, "nowhere")), CheckpointError);
  });
});

async function changeConfig(folder: string, change: Record<string, unknown>): Promise<void> {
  const file = path.join(folder, "config.json");
  const config = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  await writeFile(file, JSON.stringify({ ...config, ...change }));
}
