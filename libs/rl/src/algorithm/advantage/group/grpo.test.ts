import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { groupRelative } from "./grpo.ts";

const GRPO = { normalizeByStd: true, epsilon: 1e-6 };

function assertClose(actual: readonly number[], expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, i) => {
    assert.ok(Math.abs(value - expected[i]!) < 1e-12, `${i}: ${value} is not ${expected[i]}`);
  });
}

describe("grpo advantages", () => {
  test("are (r - mean) / (sample std + eps)", () => {
    // mean 0.25, squares 0.0625 * 3 + 0.5625 = 0.75, std = sqrt(0.75 / 3) = 0.5
    assertClose(groupRelative([1, 0, 0, 0], GRPO), [
      0.75 / 0.500001,
      -0.25 / 0.500001,
      -0.25 / 0.500001,
      -0.25 / 0.500001,
    ]);
    // mean 2, squares 1 + 0 + 1 = 2, std = 1
    assertClose(groupRelative([1, 2, 3], { ...GRPO, epsilon: 0 }), [-1, 0, 1]);
  });

  test("are r - mean without the division (Dr.GRPO)", () => {
    assertClose(groupRelative([1, 0, 0, 0], { ...GRPO, normalizeByStd: false }), [0.75, -0.25, -0.25, -0.25]);
  });

  test("are exactly 0 in a group of equal rewards, also where their mean rounds", () => {
    const third = 1 / 3;
    assert.deepEqual(groupRelative([0.1, 0.1, 0.1], { ...GRPO, epsilon: 0 }), [0, 0, 0]);
    assert.deepEqual(groupRelative([third, third, third, third, third], GRPO), [0, 0, 0, 0, 0]);
  });

  test("are 0 in a group of one", () => {
    assert.deepEqual(groupRelative([3], { ...GRPO, epsilon: 0 }), [0]);
  });

  test("of an empty group are none", () => {
    assert.deepEqual(groupRelative([], GRPO), []);
  });
});
