import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BrokenRecordError } from "../../errors.ts";
import { correctionSchema, correctTokens } from "./correction.ts";
import { compareTokens } from "./tokens.ts";

/** Tokens whose log ratios are given, sample by sample; null = a token that was not sampled. */
function tokensOf(...samples: (number | null)[][]) {
  const masks = samples.map((sample) => ({ lossMask: [0, ...sample.map((x) => (x === null ? 0 : 1))] }));
  const ratios = samples.flat().filter((x) => x !== null);
  return compareTokens(
    masks,
    ratios.map((x) => Math.min(0, x) - 1),
    ratios.map((x) => Math.min(0, -x) - 1),
  );
}

function correct(tokens: ReturnType<typeof tokensOf>, keys: object) {
  const { weights, kept, metrics } = correctTokens(tokens, correctionSchema.parse(keys));
  return { weights: [...weights], kept: [...kept], metrics };
}

function assertClose(actual: readonly number[], expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, index) => {
    assert.ok(Math.abs(value - expected[index]!) < 1e-9, `[${index}] is ${value}, not ${expected[index]}`);
  });
}

const EVERYTHING = {
  weight: { level: "sequence_sum", normalize: true },
  reject: [
    { measure: "k3", level: "sequence_max", upper: 1 },
    { measure: "ratio", lower: 0.5, upper: 2 },
    { measure: "difference", level: "segment_mean", upper: 0.5 },
  ],
  veto: 1e-4,
};
const LOG_2 = Math.log(2);

describe("correctTokens()", () => {
  test("changes nothing and shows the mismatch where a run asks for no correction", () => {
    const { weights, kept, metrics } = correct(tokensOf([LOG_2, -LOG_2]), {});
    assert.deepEqual({ weights, kept }, { weights: [1, 1], kept: [1, 1] });
    assertClose([metrics["kl/k1"]!, metrics["kl/k3"]!, metrics["chi_square/token"]!], [0, 0.25, 1.125]);
  });

  test("has no figures where nothing was sampled", () => {
    const nothing = { weights: [], kept: [], metrics: {} };
    assert.deepEqual(correct(tokensOf(), EVERYTHING), nothing);
    assert.deepEqual(correct(tokensOf([null, null], []), EVERYTHING), nothing);
  });

  test("gives finite figures for one token, a deviation of 0 included", () => {
    const { weights, kept, metrics } = correct(tokensOf([0.1]), EVERYTHING);
    assert.deepEqual({ weights, kept }, { weights: [1], kept: [1] });
    assert.equal(metrics["weight/sample/std"], 0);
    assertClose([metrics["weight/scale"]!, metrics["weight/effective/share"]!], [Math.exp(0.1), 1]);
    for (const [name, value] of Object.entries(metrics)) assert.ok(Number.isFinite(value), name);
  });

  test("stays finite where log ratios are extreme", () => {
    const tokens = tokensOf([30, -30], [-300, -300], [60]);
    for (const level of ["token", "segment_mean", "sequence_mean", "sequence_sum"]) {
      const { weights, metrics } = correct(tokens, { ...EVERYTHING, weight: { level, upper: null } });
      for (const weight of weights) assert.ok(weight >= Math.exp(-20) && weight <= Math.exp(20), `${weight}`);
      for (const [name, value] of Object.entries(metrics)) {
        assert.ok(Number.isFinite(value), `${name} is ${value}`);
      }
    }
  });

  test("a sample in which nothing was sampled changes neither weights nor figures", () => {
    const with0 = correct(tokensOf([0.2], [null], [-0.3, null, 0.4], []), EVERYTHING);
    assert.deepEqual(with0, correct(tokensOf([0.2], [-0.3, null, 0.4]), EVERYTHING));
  });

  test("rejects everything without making a number of nothing", () => {
    const { weights, kept, metrics } = correct(tokensOf([1, 1], [1]), {
      weight: { upper: 2, lower: 0.5, outside: "zero", normalize: true },
      reject: [{ measure: "k2", upper: 0 }],
    });
    assert.deepEqual({ weights, kept }, { weights: [0, 0, 0], kept: [0, 0, 0] });
    assert.equal(metrics["weight/scale"], 1);
    assert.equal(metrics["weight/effective/share"], 0);
    assert.equal(metrics["weight/cut/share"], 1);
    assert.equal(metrics["rejected/share"], 1);
    assert.equal(metrics["rejected/sample/share"], 1);
  });
});

describe("weighTokens()", () => {
  test("takes the log ratio over a token, a turn or a sample", () => {
    const tokens = tokensOf([LOG_2, null, 0, 2 * LOG_2], [-LOG_2]);
    const weightsAt = (level: string) => correct(tokens, { weight: { level, upper: null } }).weights;
    assertClose(weightsAt("token"), [2, 1, 4, 0.5]);
    assertClose(weightsAt("segment_mean"), [2, 2, 2, 0.5]);
    assertClose(weightsAt("sequence_mean"), [2, 2, 2, 0.5]);
    assertClose(weightsAt("sequence_sum"), [8, 8, 8, 0.5]);
  });

  test("brings weights outside the bounds to them, or makes them 0", () => {
    const tokens = tokensOf([2 * LOG_2, 0, -2 * LOG_2]);
    assertClose(correct(tokens, { weight: { lower: 0.5, upper: 2 } }).weights, [2, 1, 0.5]);
    const window = correct(tokens, { weight: { lower: 0.5, upper: 2, outside: "zero" } });
    assertClose(window.weights, [0, 1, 0]);
    assertClose([window.metrics["weight/cut/share"]!, window.metrics["weight/high/share"]!], [2 / 3, 1 / 3]);
  });

  test("normalises by the mean over tokens, or over samples where each has one weight", () => {
    const tokens = tokensOf([LOG_2, LOG_2], [0]);
    assertClose(correct(tokens, { weight: { normalize: true } }).weights, [1.2, 1.2, 0.6]);
    const bySample = correct(tokens, { weight: { level: "sequence_mean", normalize: true } }).weights;
    assertClose(bySample, [4 / 3, 4 / 3, 2 / 3]);
  });
});

describe("rejections", () => {
  test("a token is kept that passes all of them", () => {
    const tokens = tokensOf([1, 0, 0], [0.5], [0]);
    const first = { measure: "ratio", upper: 2 };
    const second = { measure: "k2", level: "sequence_sum", lower: 0.1, upper: 0.6 };
    assert.deepEqual(correct(tokens, { reject: [first] }).kept, [0, 1, 1, 1, 1]);
    assert.deepEqual(correct(tokens, { reject: [second] }).kept, [1, 1, 1, 1, 0]);
    const both = correct(tokens, { reject: [first, second] });
    assert.deepEqual(both.kept, [0, 1, 1, 1, 0]);
    assertClose([both.metrics["rejected/share"]!, both.metrics["rejected/sample/share"]!], [2 / 5, 2 / 3]);
  });

  test("bounds of the ratio are those of old / behaviour, and bounds of k1 those of its own sign", () => {
    const tokens = tokensOf([LOG_2, -LOG_2]);
    assert.deepEqual(correct(tokens, { reject: [{ measure: "ratio", upper: 1.5 }] }).kept, [0, 1]);
    assert.deepEqual(correct(tokens, { reject: [{ measure: "k1", upper: Math.log(1.5) }] }).kept, [1, 0]);
  });

  test("change no weight", () => {
    const tokens = tokensOf([LOG_2, 0]);
    const weight = { normalize: true };
    const { weights } = correct(tokens, { weight, reject: [{ measure: "ratio", upper: 1.5 }] });
    assert.deepEqual(weights, correct(tokens, { weight }).weights);
  });

  test("a veto leaves out whole samples for one token that is next to impossible", () => {
    const { kept, metrics } = correct(tokensOf([0, -12, 0], [0, 12], [-9]), { veto: 1e-4 });
    assert.deepEqual(kept, [0, 0, 0, 1, 1, 1]);
    assertClose([metrics["veto/sample/share"]!, metrics["rejected/share"]!], [1 / 3, 1 / 2]);
  });
});

describe("mismatchFigures()", () => {
  test("the KL is estimated in both directions", () => {
    const { metrics } = correct(tokensOf([LOG_2], [-LOG_2]), {});
    // r x is 2 log 2 and -log 2 / 2.
    assertClose([metrics["reverse_kl/k1"]!, metrics["reverse_kl/k3"]!], [0.75 * LOG_2, 0.75 * LOG_2 - 0.25]);
  });

  test("all distances are 0 where the log-probabilities are the same", () => {
    const { metrics } = correct(tokensOf([0, 0], [0]), EVERYTHING);
    const distances = Object.entries(metrics).filter(([name]) =>
      /^(kl|reverse_kl|chi_square|log_perplexity_gap|difference|rejected|veto)\//.test(name),
    );
    assert.ok(distances.length > 15);
    for (const [name, value] of distances) assert.ok(Math.abs(value) < 1e-12, `${name} is ${value}`);
  });
});

describe("correctionSchema", () => {
  const problemsOf = (keys: object) =>
    correctionSchema
      .safeParse(keys)
      .error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);

  test("recomputes the old policy and changes no weight by default", () => {
    assert.deepEqual(correctionSchema.parse({}), { old: "recomputed", reject: [], veto: null });
  });

  test("refuses bounds that say nothing, cross, or are given twice", () => {
    assert.match(
      problemsOf({ reject: [{ measure: "k1" }] })![0]!,
      /^reject\.0\.upper: .*nothing is rejected/,
    );
    assert.match(problemsOf({ weight: { lower: 3 } })![0]!, /^weight\.lower: .*at most upper, which is 2/);
    const crossed = { measure: "k1", lower: 2, upper: 1 };
    assert.match(problemsOf({ reject: [crossed] })![0]!, /^reject\.0\.lower: .*at most upper, which is 1/);
    const once = { measure: "k2", upper: 1 };
    assert.match(problemsOf({ reject: [once, once] })![0]!, /^reject\.1\.measure: another measure or level/);
    assert.match(problemsOf({ weight: { level: "sequence_max" } })![0]!, /^weight\.level: /);
  });
});

describe("compareTokens()", () => {
  test("refuses log-probabilities that are missing or not finite, with the token", () => {
    const samples = [{ lossMask: [0, 1, 1] }];
    const isBroken = (pattern: RegExp) => (error: unknown) =>
      error instanceof BrokenRecordError && pattern.test(error.message);
    assert.throws(
      () => compareTokens(samples, [-1], [-1, -1]),
      isBroken(/2 sampled tokens and 1 oldLogprobs/),
    );
    assert.throws(
      () => compareTokens(samples, [-1, Number.NEGATIVE_INFINITY], [-1, -1]),
      isBroken(/sampled token 1 has the old logprob -Infinity/),
    );
  });
});
