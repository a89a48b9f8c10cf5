import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { klSchema } from "../kl/estimators.ts";
import { policyObjective } from "../objective.ts";
import { chosenLoss, inputsOf, lossSchema, POLICY_LOSSES, termProblem } from "./registry.ts";

const NO_KL = klSchema.parse({});
/** Those that are Hone's: a loss of the user's is what its module makes. */
const KINDS = Object.keys(POLICY_LOSSES).filter((kind) => kind !== "module");
const chosen = (options: Record<string, unknown>) => chosenLoss(lossSchema.parse(options));

describe("losses of a run file", () => {
  for (const kind of KINDS) {
    test(`${kind} gives engines constants that they can compute`, () => {
      assert.equal(termProblem(chosen({ kind }).term), undefined);
    });
  }

  test("gspo, gmpo and sapo weigh each rollout alike where the file does not say, as in verl", () => {
    const aggregates = KINDS.map((kind) => [kind, lossSchema.parse({ kind }).aggregate]);
    const others = aggregates.filter(([, aggregate]) => aggregate !== "token_mean");
    assert.deepEqual(others, [
      ["gspo", "seq_mean_token_mean"],
      ["gmpo", "seq_mean_token_mean"],
      ["sapo", "seq_mean_token_mean"],
    ]);
    assert.equal(lossSchema.parse({ kind: "gspo", aggregate: "token_sum" }).aggregate, "token_sum");
  });

  test("the numbers of turns are read with the ratio of a turn only", () => {
    for (const kind of ["ppo_clip", "cispo", "tis", "topr"]) {
      assert.ok(!inputsOf([chosen({ kind }).term]).includes("segment"), kind);
      assert.ok(inputsOf([chosen({ kind, ratio: "segment" }).term]).includes("segment"), kind);
    }
  });

  test("only losses that read more than advantages train tokens without one", () => {
    const kinds = KINDS.filter((kind) => {
      return policyObjective(lossSchema.parse({ kind }), NO_KL).trainsWithoutAdvantage;
    });
    assert.deepEqual(kinds, ["dro", "clip_cov", "kl_cov", "kimi15"]);
  });
});

describe("select()", () => {
  const count = 40;
  const numbers = (valueAt: (i: number) => number) => Array.from({ length: count }, (_, i) => valueAt(i));
  const tokens = {
    logprobs: numbers((i) => -1 - (i % 7) / 3),
    behaviourLogprobs: numbers((i) => -1 - (i % 7) / 3),
    advantages: numbers((i) => (i % 5) - 2),
  };
  const indices = (choice: readonly boolean[]) => choice.flatMap((isChosen, i) => (isChosen ? [i] : []));

  test("clip_cov draws its share from the tokens between the bounds, the same ones each time", () => {
    const { select } = chosen({ kind: "clip_cov", share: 0.1, covarianceLow: 0, covarianceHigh: 9 });
    const first = indices(select!(tokens));
    assert.equal(first.length, 4);
    assert.deepEqual(indices(select!(tokens)), first);
    const all = chosen({ kind: "clip_cov", share: 1, covarianceLow: 0, covarianceHigh: 9 });
    const candidates = indices(all.select!(tokens));
    assert.ok(candidates.length > 4 && first.every((i) => candidates.includes(i)));
  });

  test("kl_cov takes the tokens of highest covariance, at least one", () => {
    const { select } = chosen({ kind: "kl_cov", share: 0.001 });
    // The lowest log-probability with the lowest advantage.
    const [only, ...more] = indices(select!(tokens));
    assert.deepEqual([only! % 7, only! % 5, more.length], [6, 0, 0]);
  });

  test("other losses have none, so that nothing is scored for them", () => {
    const kinds = KINDS.filter((kind) => chosen({ kind }).select !== undefined);
    assert.deepEqual(kinds, ["clip_cov", "kl_cov"]);
  });
});
