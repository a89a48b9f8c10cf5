import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { StateSet } from "./state-set.ts";

/** Puts values into the upper bits too. */
const SPREAD = 350_003;

describe("StateSet", () => {
  test("tells new states from those that it has, like a set of texts, and grows", () => {
    for (const width of [1, 2, 5]) {
      const random = new Random(width);
      const states = new StateSet(width);
      const expected = new Set<string>();
      const numValues = Math.ceil(12_000 ** (1 / width));
      for (let round = 0; round < 20_000; round++) {
        // Few values in each word, so that about half of the states come again.
        const state = Uint32Array.from({ length: width }, () => random.nextInt(numValues) * SPREAD);
        const text = state.join(",");
        assert.equal(states.add(state), !expected.has(text));
        expected.add(text);
      }
      assert.equal(states.size, expected.size);
      assert.ok(expected.size > 5_000 && expected.size < 19_000, `${expected.size}`);
      const read = new Uint32Array(width);
      for (const [index, text] of [...expected].entries()) {
        states.read(index, read);
        assert.equal(read.join(","), text);
      }
    }
  });

  test("keeps a copy of a state", () => {
    const states = new StateSet(1);
    const state = Uint32Array.of(7);
    states.add(state);
    state[0] = 8;
    assert.equal(states.add(Uint32Array.of(7)), false);
    assert.equal(states.add(state), true);
  });
});
