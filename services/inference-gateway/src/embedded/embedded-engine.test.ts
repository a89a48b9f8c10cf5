import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { EngineBusyError } from "../domain/errors.ts";
import { testInferenceEngine } from "../domain/inference-engine.suite.ts";
import type { PolicySource } from "../domain/inference-engine.ts";
import { EmbeddedEngine, type EmbeddedEngineOptions } from "./embedded-engine.ts";

const spec = resolveModelSpec({
  vocabSize: 50,
  hiddenSize: 32,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  maxPositions: 2048,
  initializerRange: 0.3,
});
const root = await mkdtemp(path.join(tmpdir(), "hone-engine-"));
after(() => rm(root, { recursive: true }));

async function policy(model: string, version: number): Promise<PolicySource> {
  const folder = path.join(root, `${model}-${version}`);
  const weights = initialiseWeights(spec, version + (model === "m" ? 0 : 100));
  const { digest } = await saveCheckpoint(folder, { spec, weights, companions: {} });
  return { model, version, folder, digest };
}

const [first, second, other] = [await policy("m", 1), await policy("m", 2), await policy("n", 9)];

async function setUp(options: EmbeddedEngineOptions = {}) {
  const engine = new EmbeddedEngine(options);
  return {
    engine,
    first: first!,
    second: second!,
    other: other!,
    vocabularySize: spec.vocabSize,
    maxContextTokens: spec.maxPositions,
    dispose: () => engine.close(),
  };
}

testInferenceEngine("EmbeddedEngine", () => setUp(), { isExact: true });

describe("EmbeddedEngine", () => {
  test("refuses requests beyond its queue, and answers the others", async () => {
    const { engine } = await setUp({ maxSequences: 1, maxWaiting: 3 });
    await engine.loadPolicy(first!);
    const settled = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) =>
        engine.generate({
          id: `r${i}`,
          model: "m",
          promptIds: [1, 2],
          sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 2, stopTokenIds: [] },
          seed: i,
          sessionId: "",
          groupId: "",
          versionRange: { lowest: 0, highest: 9 },
          deadlineMs: 60_000,
        }),
      ),
    );
    const refused = settled.filter((one) => one.status === "rejected");
    assert.equal(refused.length, 7);
    assert.ok(refused.every((one) => one.reason instanceof EngineBusyError));
    await engine.close();
  });

  test("reports each stage of a load when it ends", async () => {
    const { engine } = await setUp();
    const stages: string[] = [];
    await engine.loadPolicy(first!, {
      onProgress({ stage, tookMs }) {
        stages.push(stage);
        assert.ok(tookMs >= 0);
      },
    });
    assert.deepEqual(stages, ["read", "built", "swapped"]);
    await engine.close();
  });

  test("reports its capacity and its loaded models", async () => {
    const { engine } = await setUp({ maxSequences: 7, maxWaiting: 5 });
    await engine.loadPolicy(first!);
    await engine.loadPolicy(other!);
    assert.deepEqual(engine.capacity(), {
      maxSequences: 7,
      maxWaiting: 5,
      running: 0,
      waiting: 0,
      models: [
        { model: "m", versions: [1], running: 0, waiting: 0 },
        { model: "n", versions: [9], running: 0, waiting: 0 },
      ],
    });
    await engine.close();
  });
});
