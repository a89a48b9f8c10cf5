import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { BrokenStateError, checkState, checkWeights } from "./check-state.ts";
import { digestState, namesOfFiles } from "./state-files.ts";

const FILES = {
  "model.safetensors": "weights",
  "optimizer.safetensors": "moments",
  "optimizer/.metadata": "which shard holds what",
  "optimizer/__0_0.distcp": "a shard",
  "config.json": "{}",
};

async function writtenState() {
  const folder = await temporaryFolder("state");
  await mkdir(path.join(folder.path, "optimizer"));
  for (const [name, text] of Object.entries(FILES)) await writeFile(path.join(folder.path, name), text);
  const digest = createHash("sha256").update(FILES["model.safetensors"]).digest("hex");
  const state = { digest, files: await digestState(folder.path, digest) };
  return { folder, state, check: () => checkState(folder.path, state, { hasOptimizer: true }) };
}

describe("checkState()", () => {
  test("accepts the files that were committed", async () => {
    const { folder, state, check } = await writtenState();
    await using _ = folder;
    assert.deepEqual(Object.keys(state.files), Object.keys(FILES).sort());
    await check();
  });

  for (const [name, text] of Object.entries(FILES)) {
    test(`refuses a changed ${name} with its name and both digests, and a missing one`, async () => {
      const { folder, state, check } = await writtenState();
      await using _ = folder;
      const file = path.join(folder.path, name);
      const changed = `${text.slice(0, -1)}~`;
      await writeFile(file, changed);
      const found = createHash("sha256").update(changed).digest("hex");
      await assert.rejects(check(), (error: unknown) => {
        assert.ok(error instanceof BrokenStateError);
        for (const part of [file, state.files[name]!, found, "hone export"]) {
          assert.ok(error.message.includes(part), error.message);
        }
        return true;
      });
      await rm(file);
      await assert.rejects(check(), (error: unknown) => {
        assert.ok(error instanceof BrokenStateError && error.message.includes(`The file ${file} belongs`));
        return true;
      });
    });
  }

  test("refuses a file that was added later, except those that operating systems leave behind", async () => {
    const { folder, check } = await writtenState();
    await using _ = folder;
    await writeFile(path.join(folder.path, ".DS_Store"), "");
    await check();
    await writeFile(path.join(folder.path, "model.safetensors.index.json"), "{}");
    await assert.rejects(
      check(),
      /model\.safetensors\.index\.json was not there when this state was committed/,
    );
  });

  test("compares the weights and looks for the optimizer where a state's files were not recorded", async () => {
    const { folder, state } = await writtenState();
    await using _ = folder;
    const check = (digest: string) => checkState(folder.path, { digest, files: {} }, { hasOptimizer: true });
    await check(state.digest);
    await assert.rejects(check("0".repeat(64)), /its SHA-256 was 0000/);
    for (const name of await namesOfFiles(folder.path)) {
      if (name.startsWith("optimizer")) await rm(path.join(folder.path, name));
    }
    await assert.rejects(check(state.digest), BrokenStateError);
    await checkState(folder.path, { ...state, files: {} }, { hasOptimizer: false });
  });
});

test("checkWeights() compares a reference with the version that it was made from", async () => {
  const { folder, state } = await writtenState();
  await using _ = folder;
  await checkWeights(folder.path, state.digest);
  await assert.rejects(checkWeights(folder.path, "0".repeat(64)), BrokenStateError);
});
