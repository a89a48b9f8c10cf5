/** Tests the KL divergence from a reference policy: its estimators, and the gradient of the loss that contains it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { initialiseAdapters, initialiseWeights, resolveLora, resolveModelSpec } from "@hone/nn";
import { estimateKl, KlKind } from "@hone/rl";
import type { TrainingSample } from "../batches/microbatch.ts";
import type { Objective } from "../batches/plan-passes.ts";
import { GradientRunner } from "../gradient-runner.ts";

const spec = resolveModelSpec({
  vocabSize: 16,
  hiddenSize: 16,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  headDim: 4,
  initializerRange: 0.3,
});
const lora = resolveLora({ rank: 2, alpha: 4, targets: "all-linear" });
const LIMITS = { maxRowTokens: 32, maxMicrobatchTokens: 64 };

function samplesOf(random: Random): TrainingSample[] {
  return Array.from({ length: 3 }, () => {
    const tokenIds = Array.from({ length: 8 }, () => random.nextInt(16));
    const perToken = (value: () => number) => Array.from({ length: 5 }, value);
    return {
      tokenIds,
      lossMask: tokenIds.map((_, i) => (i < 3 ? 0 : 1)),
      inputs: {
        behaviourLogprob: perToken(() => -2 - random.next()),
        referenceLogprob: perToken(() => -2.5 + random.next()),
        advantage: perToken(() => 0),
      },
      weights: perToken(() => 1 / 15),
    };
  });
}

describe("the KL divergence from a reference policy", () => {
  test("its estimators k1, k2 and k3 follow their formulas", () => {
    const d = Math.log(0.5);
    const [k1, k2, k3] = [KlKind.k1, KlKind.k2, KlKind.k3].map((kind) => estimateKl(kind, -1, -1 + d));
    assert.ok(Math.abs(k1! - Math.LN2) < 1e-12);
    assert.ok(Math.abs(k2! - Math.LN2 ** 2 / 2) < 1e-12);
    assert.ok(Math.abs(k3! - (0.5 + Math.LN2 - 1)) < 1e-12);
    assert.ok(Number.isFinite(estimateKl(KlKind.k3, -1_000, 0)));
    for (const kind of Object.values(KlKind)) assert.equal(Math.abs(estimateKl(kind, -1, -1)), 0);
  });

  // With advantages of 0, the loss consists only of the KL term.
  for (const kind of Object.values(KlKind)) {
    for (const adapted of [false, true]) {
      test(`${kind}${adapted ? " with adapters" : ""}: the loss is the weighted mean of the estimates, and central differences give its gradient`, async () => {
        const random = new Random(11);
        const samples = samplesOf(random);
        const weights: Record<string, Float32Array> = {
          ...initialiseWeights(spec, 2),
          ...(adapted ? initialiseAdapters(spec, lora, 3) : {}),
        };
        for (const [name, values] of Object.entries(weights)) {
          if (name.includes("lora_B")) values.set(values.map(() => random.next() - 0.5));
        }
        const objective: Objective = {
          terms: [
            { name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28 } },
            { name: `kl_${kind}`, constants: { coefficient: 0.7 } },
          ],
          entropyCoefficient: 0,
        };
        await using cleanup = new AsyncDisposableStack();
        const runner = new GradientRunner(spec, { ...LIMITS, ...(adapted ? { lora } : {}) });
        cleanup.defer(() => runner.close());
        const found = await runner.differentiate(weights, samples, objective);
        const reference = samples.flatMap(({ inputs }) => Array.from(inputs?.referenceLogprob ?? []));
        const mean = (logprobs: Float32Array) =>
          reference.reduce((sum, value, i) => sum + estimateKl(kind, logprobs[i]!, value), 0) / 15;
        assert.ok(Math.abs(found.loss - 0.7 * mean(found.scores)) < 1e-5);
        for (const [name, gradient] of Object.entries(found.gradients)) {
          const at = gradient.reduce(
            (best, value, i) => (Math.abs(value) > Math.abs(gradient[best]!) ? i : best),
            0,
          );
          const values = weights[name]!;
          const kept = values[at]!;
          const lossAt = async (value: number) => {
            values[at] = value;
            const scored = await runner.score(weights, samples);
            values[at] = kept;
            return 0.7 * mean(scored.scores);
          };
          const step = 2e-3;
          const difference = ((await lossAt(kept + step)) - (await lossAt(kept - step))) / (2 * step);
          const error = Math.abs(difference - gradient[at]!);
          assert.ok(
            error < 2e-3 * Math.max(0.2, Math.abs(difference)),
            `${name}: ${difference} ${gradient[at]}`,
          );
        }
      });
    }
  }
});
