import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { defaultProcesses } from "./default-processes.ts";

describe("defaultProcesses", () => {
  test("follows the cores, and never falls below one that runs and one ahead", () => {
    assert.ok(defaultProcesses() >= 2);
    assert.ok(defaultProcesses() <= Math.max(2, availableParallelism()));
  });
});
