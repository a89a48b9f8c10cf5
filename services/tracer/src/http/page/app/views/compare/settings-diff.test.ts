/** Tests which settings differ. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { differencesOf } from "./settings-diff.ts";

describe("differencesOf()", () => {
  test("names the keys whose values differ, by their path", () => {
    const a = { seed: 7, trainer: { steps: 10, epochs: 2 }, judge: [{ kind: "environment" }] };
    const b = {
      seed: 7,
      trainer: { steps: 20, epochs: 2 },
      judge: [{ kind: "environment" }, { kind: "llm" }],
    };
    assert.deepEqual(differencesOf([a, b]), [
      { key: "judge[1].kind", values: [undefined, '"llm"'] },
      { key: "trainer.steps", values: ["10", "20"] },
    ]);
  });

  test("tells a missing key from an empty one, and knows nothing of a run file that is not known", () => {
    assert.deepEqual(differencesOf([{ a: {} }, {}]), [{ key: "a", values: ["{}", undefined] }]);
    assert.deepEqual(differencesOf([null, { a: 1 }]), [{ key: "a", values: [undefined, "1"] }]);
  });

  test("ends for a configuration of any depth", () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 50; depth++) deep = { deep };
    assert.equal(differencesOf([deep, {}]).length, 1);
  });
});
