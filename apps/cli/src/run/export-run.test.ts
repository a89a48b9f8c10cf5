import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { UsageError } from "../errors.ts";
import { copyModel } from "./export-model.ts";
import { findRunWeights } from "./run-weights.ts";

async function stateWith(...folders: string[]) {
  const state = await temporaryFolder("export");
  for (const each of folders) {
    const folder = join(state.path, "runs", "lake-1", each);
    await mkdir(folder, { recursive: true });
    const files = ["config.json", "model.safetensors", "optimizer.safetensors", "tokenizer.json"];
    for (const name of files) await writeFile(join(folder, name), `${each}/${name}`);
  }
  return state;
}

describe("the weights of a run", () => {
  test("are those of the newest checkpoint by number, not by the order of names", async () => {
    await using state = await stateWith(
      "checkpoints/step-9",
      "checkpoints/step-10",
      "checkpoints/.new-step-11-1",
      "state/12-1",
    );
    assert.equal((await findRunWeights(state.path, "lake-1", undefined)).version, 10);
    assert.equal((await findRunWeights(state.path, "lake-1", 9)).version, 9);
  });

  test("are those of the newest epoch's state if there is no checkpoint", async () => {
    await using state = await stateWith("checkpoints/step-9", "state/12-9", "state/12-10");
    const { folder } = await findRunWeights(state.path, "lake-1", 12);
    assert.ok(folder.endsWith("12-10"));
  });

  test("are refused with a list of the existing versions if there is none of this version", async () => {
    await using state = await stateWith("checkpoints/step-9", "state/12-1");
    await assert.rejects(findRunWeights(state.path, "lake-1", 3), /no version 3; it has 9, 12/);
    await assert.rejects(findRunWeights(state.path, "lake-2", undefined), /run lake-2 has no weights/);
    await assert.rejects(findRunWeights(state.path, "../lake-1", undefined), UsageError);
  });
});

describe("copyModel()", () => {
  test("copies the files of a model, and not its optimizer", async () => {
    await using state = await stateWith("state/12-1");
    const target = join(state.path, "out");
    await copyModel(join(state.path, "runs", "lake-1", "state", "12-1"), target);
    assert.deepEqual((await readdir(target)).sort(), ["config.json", "model.safetensors", "tokenizer.json"]);
    assert.equal(await readFile(join(target, "config.json"), "utf8"), "state/12-1/config.json");
  });

  test("copies adapters with the public name of their base model", async () => {
    await using state = await temporaryFolder("export");
    const source = join(state.path, "adapter");
    await mkdir(source);
    await writeFile(
      join(source, "adapter_config.json"),
      '{"base_model_name_or_path": "../../model/base", "r": 4}',
    );
    await writeFile(join(source, "adapter_model.safetensors"), "tensors");
    const target = join(state.path, "out");
    const names = await copyModel(source, target, { place: "owner/name", revision: "main" });
    assert.deepEqual(names, ["adapter_config.json", "adapter_model.safetensors"]);
    assert.deepEqual(JSON.parse(await readFile(join(target, "adapter_config.json"), "utf8")), {
      base_model_name_or_path: "owner/name",
      r: 4,
      revision: "main",
    });
  });

  test("does not write to a folder that is not empty, and leaves no files when it fails", async () => {
    await using state = await stateWith("state/12-1");
    const source = join(state.path, "runs", "lake-1", "state", "12-1");
    await assert.rejects(copyModel(source, source), UsageError);
    await assert.rejects(copyModel(join(state.path, "nowhere"), join(state.path, "out")));
    assert.deepEqual(await readdir(state.path), ["runs"]);
  });
});
