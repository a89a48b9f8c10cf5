import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { PolicyLoadError } from "../../domain/errors.ts";
import { readPolicy } from "./read-policy.ts";

const spec = resolveModelSpec({ vocabSize: 20, hiddenSize: 16, numLayers: 1, numHeads: 2 });
const weights = initialiseWeights(spec, 4);

describe("readPolicy()", () => {
  test("reads large weights in a separate thread, and reports why they cannot be read", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "hone-read-"));
    try {
      const { digest } = await saveCheckpoint(folder, { spec, weights, companions: {} });
      const source = { model: "m", version: 1, folder, digest };
      const read = await readPolicy(source, undefined, 1);
      assert.deepEqual(read.weights, weights);
      assert.deepEqual(read, await readPolicy(source));
      const announced = readPolicy({ ...source, digest: "0".repeat(64) }, undefined, 1);
      await assert.rejects(
        announced,
        (error) => error instanceof PolicyLoadError && /SHA-256/.test(error.message),
      );
      await assert.rejects(
        readPolicy({ ...source, folder: `${folder}-missing` }, undefined, 1),
        PolicyLoadError,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
