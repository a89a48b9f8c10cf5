import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { RUN_COST } from "./embedded-engine.ts";
import { EngineCore } from "./engine-core.ts";
import { OnnxRunner } from "./onnx/onnx-runner.ts";

for (const contextLayout of ["pooled", "slots"] as const) {
  describe(`OnnxRunner with weights that diverge on one token, ${contextLayout}`, () => {
    const spec = resolveModelSpec({
      vocabSize: 32,
      hiddenSize: 32,
      numLayers: 2,
      numHeads: 4,
      isTied: false,
      initializerRange: 0.3,
      maxPositions: 128,
    });
    const POISON = 31;
    const weights = initialiseWeights(spec, 2);
    weights["model.embed_tokens.weight"]!.fill(Number.POSITIVE_INFINITY, POISON * spec.hiddenSize);

    async function answers(prompts: number[][]) {
      const core = new EngineCore({
        maxSequences: 64,
        maxWaiting: 1000,
        maxStepTokens: 4096,
        runCost: RUN_COST,
        now: () => performance.now(),
      });
      // There are few pages, so those of the failed sequence are used again.
      const runner = await OnnxRunner.create(spec, weights, {
        maxCacheBytes: 96 * 1024,
        maxSequences: 64,
        intraOpThreads: 1,
        contextLayout,
      });
      const installed = core.install("m", 1, runner);
      await core.step();
      await installed;
      for (const [i, promptIds] of prompts.entries()) {
        core.submit(
          {
            id: `${i}`,
            model: "m",
            promptIds,
            // If the token itself is sampled, it ends the sequence and is not computed.
            sampling: { temperature: 0, topP: 1, topK: 0, maxNewTokens: 20, stopTokenIds: [POISON] },
            seed: i,
            sessionId: "",
            groupId: "",
            versionRange: { lowest: 1, highest: 1 },
            deadlineMs: 600_000,
          },
          false,
        );
        if (i % 3 === 2) while (core.hasWork) await core.step();
      }
      while (core.hasWork) await core.step();
      const outcomes = new Array<string>(prompts.length);
      for (const event of core.takeEvents()) {
        outcomes[Number(event.id)] = event.kind === "done" ? event.result.tokenIds.join() : event.kind;
      }
      await runner.dispose();
      return outcomes;
    }

    test("fails the sequences that have the token, and gives the others the same tokens as alone", async () => {
      const prompts = Array.from({ length: 12 }, (_, i) => (i % 3 === 0 ? [i, POISON, 3] : [i, 2, 3]));
      const isHealthy = (_: unknown, i: number) => i % 3 !== 0;
      const together = await answers(prompts);
      assert.deepEqual(together.filter(isHealthy), await answers(prompts.filter(isHealthy)));
      for (const [i, outcome] of together.entries())
        assert.equal(outcome === "failed", !isHealthy(outcome, i));
    });
  });
}
