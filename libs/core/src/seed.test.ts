import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deriveSeed, Random } from "./seed.ts";

/** Values of the first version. If they change, every run changes. */
const GOLDEN_SEED = 4_694_801_683_624_012;
const GOLDEN_UINTS = [1_776_835_114, 1_645_943_089, 3_187_679_832];

describe("deriveSeed()", () => {
  test("gives a safe integer that depends on the parent and on each label, its type and its position", () => {
    const seeds = [
      deriveSeed(7, "sampling", "train.1.2.3", 0),
      deriveSeed(8, "sampling", "train.1.2.3", 0),
      deriveSeed(7, "tool", "train.1.2.3", 0),
      deriveSeed(7, "sampling", "train.1.2.3", "0"),
      deriveSeed(7, "train.1.2.3", "sampling", 0),
      deriveSeed(7, "sampling", "train.1.2.30"),
    ];
    assert.equal(new Set(seeds).size, seeds.length);
    for (const seed of seeds) assert.ok(Number.isSafeInteger(seed) && seed >= 0);
  });

  test("gives the values of earlier versions, so that their runs can be repeated", () => {
    assert.equal(deriveSeed(7, "sampling", "train.1.2.3", 0), deriveSeed(7, "sampling", "train.1.2.3", 0));
    assert.equal(deriveSeed(0, "golden"), GOLDEN_SEED);
  });
});

describe("Random", () => {
  test("gives the same numbers for a seed as earlier versions did", () => {
    const random = new Random(42);
    assert.deepEqual([random.nextUint32(), random.nextUint32(), random.nextUint32()], GOLDEN_UINTS);
  });

  test("next() is uniform in [0, 1)", () => {
    const random = new Random(1);
    let sum = 0;
    for (let i = 0; i < 100_000; i++) {
      const value = random.next();
      assert.ok(value >= 0 && value < 1);
      sum += value;
    }
    // The mean of 100,000 uniform numbers has a standard deviation of 0.0009.
    assert.ok(Math.abs(sum / 100_000 - 0.5) < 0.005);
  });

  test("nextInt() gives each value equally often, and refuses a bound that is not a positive integer", () => {
    const random = new Random(2);
    const counts = [0, 0, 0];
    for (let i = 0; i < 30_000; i++) counts[random.nextInt(3)]!++;
    // A count has a standard deviation of 82.
    for (const count of counts) assert.ok(Math.abs(count - 10_000) < 500);
    assert.throws(() => random.nextInt(0), RangeError);
    assert.throws(() => random.nextInt(1.5), RangeError);
  });
});
