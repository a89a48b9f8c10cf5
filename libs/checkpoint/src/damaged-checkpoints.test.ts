import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { HoneError } from "@hone/core";
import { initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { absurdText, damaged, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { loadModel, saveCheckpoint } from "./checkpoint.ts";
import { loadOptimizer } from "./optimizer-file.ts";
import { initialiseAdamW } from "./optimizer-state.ts";

const spec = resolveModelSpec({ vocabSize: 11, hiddenSize: 8, numLayers: 1, numHeads: 2, eosTokenIds: [3] });

describe("damaged checkpoints", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), "hone-damaged-"));
    await saveCheckpoint(
      folder,
      { spec, weights: initialiseWeights(spec, 4), companions: {} },
      initialiseAdamW(listParameters(spec)),
    );
  });
  after(() => rm(folder, { recursive: true }));

  /** Loads the folder with one file replaced. Any thrown error that is not a HoneError fails the test. */
  async function loadWith(name: string, bytes: Uint8Array): Promise<void> {
    const file = path.join(folder, name);
    const original = await readFile(file);
    await writeFile(file, bytes);
    try {
      await loadModel(folder);
      const optimizer = await loadOptimizer(folder, listParameters(spec));
      for (const moment of Object.values(optimizer?.m ?? {})) assert.ok(moment instanceof Float32Array);
    } catch (error) {
      assert.ok(error instanceof HoneError, `${String(error)} ${error instanceof Error ? error.stack : ""}`);
    } finally {
      await writeFile(file, original);
    }
  }

  for (const name of ["config.json", "model.safetensors", "optimizer.safetensors"]) {
    test(`${name} with any bytes is either read or rejected`, async () => {
      const original = await readFile(path.join(folder, name));
      // Only the headers are parsed; digests detect damage inside the values.
      const head = damaged(original.subarray(0, 600)).map((bytes) =>
        Buffer.concat([bytes, original.subarray(600)]),
      );
      const text = absurdText.map((json) => {
        const header = Buffer.from(json);
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(header.length));
        return name === "config.json" ? header : Buffer.concat([length, header, Buffer.alloc(64)]);
      });
      await fc.assert(
        fc.asyncProperty(fc.oneof(head, damaged(original), text), (bytes) => loadWith(name, bytes)),
        fuzz(60),
      );
    });
  }

  test("an optimizer file in the place of the weights is rejected", async () => {
    const optimizer = await readFile(path.join(folder, "optimizer.safetensors"));
    await assert.rejects(async () => {
      await writeFile(path.join(folder, "model.safetensors"), optimizer);
      await loadModel(folder);
    }, HoneError);
  });
});
