import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import fc from "fast-check";
import { EngineFailedError } from "../errors.ts";
import { uniformAt } from "./counter-random.ts";
import { Sampler } from "./sampler.ts";
import { inverseTemperature, type RowMasses } from "./sampling-row.ts";

const logits = new Float32Array([0.5, 2, -1, 2, 0, -3, 1.5, 1]);
const plain = { temperature: 1, topP: 1, topK: 0 };

/** The probabilities of the kept set, computed directly from the definition. */
function reference(shape: typeof plain & { readonly minP?: number }): number[] {
  const max = Math.max(...logits);
  const weights = Array.from(logits, (logit) => Math.exp((logit - max) / shape.temperature));
  let ranked = weights.map((_, id) => id).sort((a, b) => weights[b]! - weights[a]! || a - b);
  ranked = ranked.filter((id) => weights[id]! >= (shape.minP ?? 0));
  if (shape.topK > 0) ranked = ranked.slice(0, shape.topK);
  const mass = ranked.reduce((sum, id) => sum + weights[id]!, 0);
  let cumulative = 0;
  const kept = new Set<number>();
  for (const id of ranked) {
    kept.add(id);
    cumulative += weights[id]!;
    if (cumulative >= shape.topP * mass) break;
  }
  const keptMass = [...kept].reduce((sum, id) => sum + weights[id]!, 0);
  return weights.map((weight, id) => (kept.has(id) ? weight / keptMass : 0));
}

describe("Sampler", () => {
  for (const shape of [
    plain,
    { temperature: 0.5, topP: 1, topK: 0 },
    { temperature: 1.7, topP: 1, topK: 3 },
    { temperature: 1, topP: 0.6, topK: 0 },
    { temperature: 2, topP: 0.8, topK: 5 },
    { temperature: 1, topP: 1e-9, topK: 0 },
    { temperature: 1, topP: 1, topK: 1 },
    { temperature: 1, topP: 1, topK: 0, minP: 0.3 },
    { temperature: 1.5, topP: 0.7, topK: 0, minP: 0.2 },
    { temperature: 1.5, topP: 0.9, topK: 4, minP: 0.1 },
  ]) {
    test(`samples from the restricted distribution and returns its logprobs with ${JSON.stringify(shape)}`, () => {
      const expected = reference(shape);
      const sampler = new Sampler(logits.length);
      const counts = new Array<number>(logits.length).fill(0);
      const draws = 20_000;
      for (let i = 0; i < draws; i++) {
        sampler.sample(logits, shape, uniformAt(3, i));
        counts[sampler.tokenId]!++;
        assert.equal(sampler.logprob, Math.fround(sampler.logprob));
        assert.ok(Math.abs(Math.exp(sampler.logprob) - expected[sampler.tokenId]!) < 1e-6);
      }
      for (let id = 0; id < counts.length; id++) {
        // Five standard deviations of a binomial count.
        const tolerance = 5 * Math.sqrt(draws * expected[id]! * (1 - expected[id]!)) + 1e-9;
        assert.ok(Math.abs(counts[id]! - draws * expected[id]!) <= tolerance, `id ${id}: ${counts[id]}`);
      }
    });
  }

  test("takes the most likely token, ties to the lower id, with logprob 0 at temperature 0", () => {
    const sampler = new Sampler(logits.length);
    sampler.sample(logits, { ...plain, temperature: 0 }, 0.99);
    assert.deepEqual([sampler.tokenId, sampler.logprob], [1, 0]);
  });

  test("gives top-k ties to the lower id", () => {
    const sampler = new Sampler(logits.length);
    sampler.sample(logits, { ...plain, topK: 1 }, 0.99);
    assert.equal(sampler.tokenId, 1);
  });

  test("never draws a token whose logit is minus infinity, also at the ends of the interval", () => {
    const masked = new Float32Array([Number.NEGATIVE_INFINITY, 1, 1, Number.NEGATIVE_INFINITY]);
    const sampler = new Sampler(masked.length);
    sampler.sample(masked, plain, 0);
    assert.equal(sampler.tokenId, 1);
    sampler.sample(masked, plain, 1 - 2 ** -53);
    assert.equal(sampler.tokenId, 2);
  });

  test("returns the most likely tokens of the distribution that it sampled from", () => {
    const sampler = new Sampler(logits.length);
    const told = (shape: Parameters<Sampler["sample"]>[1]) => {
      sampler.sample(logits, shape, 0.5);
      return sampler.top;
    };
    for (const shape of [plain, { ...plain, temperature: 0.7, topK: 4 }, { ...plain, topP: 0.6 }]) {
      const expected = reference(shape)
        .map((probability, id) => ({ id, probability }))
        .filter(({ probability }) => probability > 0)
        .sort((a, b) => b.probability - a.probability || a.id - b.id)
        .slice(0, 3);
      const found = told({ ...shape, topLogprobs: 3 });
      assert.deepEqual(
        found.map(({ tokenId }) => tokenId),
        expected.map(({ id }) => id),
      );
      for (const [i, { logprob }] of found.entries()) {
        assert.ok(Math.abs(logprob - Math.log(expected[i]!.probability)) < 1e-6);
      }
    }
    assert.deepEqual(told({ ...plain, temperature: 0, topLogprobs: 3 }), [{ tokenId: 1, logprob: 0 }]);
    assert.deepEqual(told(plain), []);
  });

  test("applies penalties to the logits of the text's tokens before everything else", () => {
    const text = { tokenIds: Int32Array.of(1, 5, 6, 6, 9), promptLength: 2, length: 4 };
    const sampler = new Sampler(logits.length);
    const expected = new Sampler(logits.length);
    const penalized = logits.slice();
    penalized[1]! /= 2;
    penalized[5]! *= 2;
    penalized[6] = logits[6]! / 2 - 0.25 - 2 * 0.5;
    for (const shape of [plain, { ...plain, topK: 3 }, { ...plain, temperature: 0 }]) {
      expected.sample(penalized, shape, 0.4);
      const penalties = { repetitionPenalty: 2, presencePenalty: 0.25, frequencyPenalty: 0.5 };
      sampler.sample(logits, { ...shape, ...penalties }, 0.4, { text, masses: massesOf(logits, 1, 4) });
      assert.deepEqual([sampler.tokenId, sampler.logprob], [expected.tokenId, expected.logprob]);
    }
    assert.equal(expected.tokenId, 3, "the second of two alike is the most likely now");
  });

  test("refuses logits that are not finite", () => {
    const sampler = new Sampler(2);
    const sample = (row: number[]) => () => sampler.sample(new Float32Array(row), plain, 0.5);
    assert.throws(sample([1, Number.NaN]), EngineFailedError);
    assert.throws(sample([Number.POSITIVE_INFINITY, 0]), EngineFailedError);
    assert.throws(sample([Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]), EngineFailedError);
  });
});

/** The definition, in float32 as a graph computes it. */
function massesOf(row: Float32Array, temperature: number, blocks: number): RowMasses {
  const scaled = row.map((logit) => logit * inverseTemperature(temperature));
  const largest = scaled.reduce((most, value) => (Number.isNaN(value) || value > most ? value : most));
  const size = row.length / blocks;
  const sums = Array.from({ length: blocks }, (_, block) =>
    scaled
      .subarray(block * size, (block + 1) * size)
      .reduce((sum, value) => sum + Math.exp(value - largest), 0),
  );
  return { largest, blockMasses: new Float32Array(sums) };
}

describe("Sampler with the sums of a row's weights", () => {
  const random = new Random(3);
  const wide = Float32Array.from({ length: 96 }, () => 6 * random.next());

  for (const temperature of [1, 0.3, 2.5]) {
    test(`samples the same tokens with and without the sums at temperature ${temperature}`, () => {
      const masses = massesOf(wide, temperature, 8);
      const [whole, blocked] = [new Sampler(wide.length), new Sampler(wide.length)];
      for (let i = 0; i < 20_000; i++) {
        whole.sample(wide, { ...plain, temperature }, uniformAt(5, i));
        blocked.sample(wide, { ...plain, temperature }, uniformAt(5, i), { masses });
        assert.equal(blocked.tokenId, whole.tokenId);
        assert.ok(Math.abs(blocked.logprob - whole.logprob) < 2e-6);
      }
    });
  }

  test("samples the same token from the drawn block alone as from the whole row", () => {
    const masses = massesOf(wide, 1, 8);
    const [whole, alone] = [new Sampler(wide.length), new Sampler(wide.length)];
    for (let i = 0; i < 20_000; i++) {
      whole.sample(wide, plain, uniformAt(6, i));
      const block = Math.floor(whole.tokenId / 12);
      const drawn = { block, logits: wide.subarray(block * 12, (block + 1) * 12) };
      alone.sample(undefined, plain, uniformAt(6, i), { masses: { ...masses, drawn } });
      assert.equal(alone.tokenId, whole.tokenId);
      assert.ok(Math.abs(alone.logprob - whole.logprob) < 2e-6);
    }
    const drawn = { block: 0, logits: wide.subarray(0, 12) };
    const restricted = () =>
      alone.sample(undefined, { ...plain, topK: 3 }, 0.5, { masses: { ...masses, drawn } });
    assert.throws(restricted, /The row of logits of a token is missing/);
  });

  test("samples from the kept set if the vocabulary is restricted, or the temperature is too low for float32", () => {
    for (const shape of [
      { ...plain, topK: 5 },
      { ...plain, topP: 0.5 },
      { ...plain, temperature: 0.01 },
    ]) {
      const [without, given] = [new Sampler(wide.length), new Sampler(wide.length)];
      without.sample(wide, shape, 0.77);
      given.sample(wide, shape, 0.77, { masses: massesOf(wide, shape.temperature, 8) });
      assert.equal(given.tokenId, without.tokenId);
      assert.ok(Math.abs(given.logprob - without.logprob) < 2e-6);
    }
  });

  test("keeps the tokens of the definition, however many blocks it must read", () => {
    const shapes = fc.record({
      temperature: fc.constantFrom(0.2, 1, 3),
      topK: fc.constantFrom(0, 1, 7, 60),
      topP: fc.constantFrom(0.05, 0.5, 0.95, 1),
      minP: fc.constantFrom(0, 0.01, 0.4, 1),
    });
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 30 }), fc.nat(), (shape, spread, seed) => {
        const draws = new Random(seed);
        // Some tokens are equally likely, so that there are ties.
        const row = Float32Array.from({ length: 512 }, () => Math.round(spread * draws.next() * 4) / 4);
        const [without, given] = [new Sampler(row.length), new Sampler(row.length)];
        const masses = massesOf(row, shape.temperature, 64);
        for (const uniform of [0, 0.5, 1 - 2 ** -53]) {
          without.sample(row, { ...shape, topLogprobs: 20 }, uniform);
          given.sample(row, { ...shape, topLogprobs: 20 }, uniform, { masses });
          assert.ok(Math.abs(given.logprob - without.logprob) < 1e-5);
          assert.deepEqual(
            given.top.map(({ tokenId }) => tokenId),
            without.top.map(({ tokenId }) => tokenId),
          );
        }
      }),
    );
  });

  test("takes the most likely token, ties to the lower id, with logprob 0 at temperature 0", () => {
    const sampler = new Sampler(logits.length);
    sampler.sample(logits, { ...plain, temperature: 0 }, 0.99, { masses: massesOf(logits, 0, 4) });
    assert.deepEqual([sampler.tokenId, sampler.logprob], [1, 0]);
  });

  test("never draws a token whose logit is minus infinity, also at the ends of the interval", () => {
    const never = Number.NEGATIVE_INFINITY;
    const masked = new Float32Array([never, never, never, 1, 1, never, never, never]);
    const sampler = new Sampler(masked.length);
    sampler.sample(masked, plain, 0, { masses: massesOf(masked, 1, 4) });
    assert.equal(sampler.tokenId, 3);
    sampler.sample(masked, plain, 1 - 2 ** -53, { masses: massesOf(masked, 1, 4) });
    assert.equal(sampler.tokenId, 4);
  });

  test("refuses logits that are not finite", () => {
    const sampler = new Sampler(4);
    const masses = { largest: 1, blockMasses: new Float32Array([1, Number.NaN]) };
    assert.throws(() => sampler.sample(new Float32Array(4), plain, 0.5, { masses }), EngineFailedError);
  });
});
