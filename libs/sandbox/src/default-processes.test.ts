import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { defaultProcesses } from "./default-processes.ts";

describe("defaultProcesses", () => {
  test("follows the number of cores, and is at least two: one that runs and one started in advance", () => {
    assert.ok(defaultProcesses() >= 2);
    assert.ok(defaultProcesses() <= Math.max(2, availableParallelism()));
  });
});
