import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { digestOfMerged, loadMerged } from "@hone/checkpoint";
import { quantizeWeights } from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { PolicyLoadError } from "../../domain/errors.ts";
import { loadPolicyFolder } from "./load-policy-folder.ts";

/** A small model and adapters of it, made by PEFT (libs/checkpoint/fixtures). */
const FIXTURES = path.join(import.meta.dirname, "../../../../../libs/checkpoint/fixtures");
const ADAPTERS = path.join(FIXTURES, "adapters/qwen3-all");

describe("loadPolicyFolder()", () => {
  test("merges adapters into the base that their folder names, with the same result each time", async () => {
    const digest = await digestOfMerged(ADAPTERS);
    const source = { model: "run", version: 3, folder: ADAPTERS, digest };
    const [first, second] = [await loadPolicyFolder(source), await loadPolicyFolder(source)];
    assert.deepEqual(first, second);
    assert.deepEqual(first.weights, (await loadMerged(ADAPTERS)).weights);
  });

  test("takes the base from the folder that it is given", async () => {
    await using scratch = await temporaryFolder("policy");
    const folder = path.join(scratch.path, "adapter");
    await cp(ADAPTERS, folder, { recursive: true });
    const file = path.join(folder, "adapter_config.json");
    const config = await readFile(file, "utf8");
    await writeFile(file, config.replace("../../families/qwen3", "owner/name"));
    const source = { model: "run", version: 3, folder, digest: await digestOfMerged(folder) };
    await assert.rejects(loadPolicyFolder(source), PolicyLoadError);
    const { weights } = await loadPolicyFolder({ ...source, base: path.join(FIXTURES, "families/qwen3") });
    assert.deepEqual(weights, (await loadMerged(ADAPTERS)).weights);
  });

  test("quantizes what it reads: a model, and adapters that are merged into theirs", async () => {
    for (const folder of [path.join(FIXTURES, "families/qwen3"), ADAPTERS]) {
      const source = { model: "run", version: 3, folder, digest: await digestOfMerged(folder) };
      const merged = await loadMerged(folder);
      const { spec, weights } = await loadPolicyFolder(source, "uint8");
      assert.deepEqual(spec, merged.spec);
      assert.deepEqual(weights, await quantizeWeights(spec, merged.weights, "uint8"));
      await assert.rejects(loadPolicyFolder({ ...source, digest: "0".repeat(64) }, "uint8"), PolicyLoadError);
    }
  });

  test("refuses adapters that are not the announced ones", async () => {
    const source = { model: "run", version: 3, folder: ADAPTERS, digest: "0".repeat(64) };
    await assert.rejects(loadPolicyFolder(source), /SHA-256 of its weights is \S+; it must be 0000/);
  });
});
