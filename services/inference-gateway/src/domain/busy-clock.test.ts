import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { timeEngine } from "./busy-clock.ts";
import type { EngineGeneration, GenerateRequest, InferenceEngine } from "./inference-engine.ts";

/** An engine whose generations end when the test says so. */
function engineByHand() {
  const ends: PromiseWithResolvers<EngineGeneration>[] = [];
  const engine = {
    generate: () => {
      const end = Promise.withResolvers<EngineGeneration>();
      ends.push(end);
      return end.promise;
    },
  } as Partial<InferenceEngine> as InferenceEngine;
  return { engine, ends };
}

describe("timeEngine()", () => {
  test("counts the time in which at least one generation is open, once", async () => {
    const { engine: inner, ends } = engineByHand();
    let nowMs = 1_000;
    const { engine, busyTime } = timeEngine(inner, () => nowMs);
    const generate = () => engine.generate({} as GenerateRequest);
    nowMs += 10;
    assert.deepEqual(busyTime(), { upMs: 10, busyMs: 0 });
    const first = generate();
    nowMs += 5;
    const second = generate();
    nowMs += 5;
    assert.deepEqual(busyTime(), { upMs: 20, busyMs: 10 });
    ends[0]!.resolve({} as EngineGeneration);
    await first;
    nowMs += 5;
    ends[1]!.resolve({} as EngineGeneration);
    await second;
    nowMs += 100;
    assert.deepEqual(busyTime(), { upMs: 125, busyMs: 15 });
  });

  test("stops counting when a generation fails", async () => {
    const { engine: inner, ends } = engineByHand();
    let nowMs = 0;
    const { engine, busyTime } = timeEngine(inner, () => nowMs);
    const failing = engine.generate({} as GenerateRequest);
    nowMs = 3;
    ends[0]!.reject(new Error("the engine failed"));
    await assert.rejects(failing);
    nowMs = 10;
    assert.deepEqual(busyTime(), { upMs: 10, busyMs: 3 });
  });
});
