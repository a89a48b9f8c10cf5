import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { BrokenStateError, checkState } from "./check-state.ts";

describe("checkState()", () => {
  test("takes what was committed, refuses other weights and a lost optimizer", async () => {
    await using folder = await temporaryFolder("state");
    const weights = Buffer.from("weights");
    const digest = createHash("sha256").update(weights).digest("hex");
    await writeFile(path.join(folder.path, "model.safetensors"), weights);
    await writeFile(path.join(folder.path, "optimizer.safetensors"), "moments");
    await checkState(folder.path, digest, { hasOptimizer: true });
    await assert.rejects(
      checkState(folder.path, "0".repeat(64), { hasOptimizer: true }),
      /model\.safetensors as its SHA-256 must be 0000/,
    );
    await rm(path.join(folder.path, "optimizer.safetensors"));
    await assert.rejects(checkState(folder.path, digest, { hasOptimizer: true }), BrokenStateError);
    await checkState(folder.path, digest, { hasOptimizer: false });
  });
});
