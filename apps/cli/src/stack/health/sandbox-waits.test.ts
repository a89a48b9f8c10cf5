import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { waitsIn } from "./sandbox-waits.ts";

describe("waitsIn()", () => {
  test("counts the waiting programs over all languages", () => {
    const metrics = [
      "# TYPE hone_sandbox_waiting gauge",
      'hone_sandbox_processes{part="answer"} 2',
      'hone_sandbox_processes{part="test"} 2',
      'hone_sandbox_processes_taken{part="test"} 2',
      'hone_sandbox_waiting{part="answer"} 7',
      'hone_sandbox_waiting{part="test"} 1',
    ].join("\n");
    assert.equal(waitsIn(metrics), "8 runs of a model's code wait for one of 4 sandbox processes");
  });

  test("is empty if nothing waits, and for a service without a sandbox", () => {
    assert.equal(waitsIn('hone_sandbox_processes{part="tool"} 2\nhone_sandbox_waiting{part="tool"} 0'), "");
    assert.equal(waitsIn("hone_service_ready 1\n"), "");
  });
});
