import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BoundedPattern } from "./bounded-pattern.ts";
import { BoundedSchema } from "./bounded-schema.ts";
import { TooSlowError } from "./bounded-work.ts";

/* The attacker writes the run file, the schema of a tool's server, or, being the model, the text that is matched. */

const SLOW_TEXT = `${"a".repeat(40)}!`;
/** The time limit, and the delay that a busy machine may add. */
const AT_MOST_MS = 10_000;

/** Asserts that the work is stopped at its time limit three times, and is refused at once from then on. */
function isStopped(work: () => unknown): void {
  const startedAt = performance.now();
  for (const isFinal of [false, false, true]) {
    assert.throws(work, (error) => {
      assert.ok(error instanceof TooSlowError, String(error));
      assert.equal(error.isFinal, isFinal);
      assert.match(error.message, /takes longer than 1000 ms/);
      return true;
    });
  }
  assert.ok(performance.now() - startedAt < 3 * AT_MOST_MS);
  const stoppedAt = performance.now();
  for (let count = 0; count < 100; count++) assert.throws(work, TooSlowError);
  assert.ok(performance.now() - stoppedAt < 500, "the work was tried again");
}

describe("a regular expression from outside", () => {
  test("finds its matches", () => {
    const pattern = new BoundedPattern("(\\d+) (apples|pears)", "i");
    const found = pattern.matches("2 apples, 3 Pears").map(([whole, count]) => [whole, count]);
    assert.deepEqual(found, [
      ["2 apples", "2"],
      ["3 Pears", "3"],
    ]);
  });

  test("is stopped when it takes for ever, and refused after three stops", () => {
    const pattern = new BoundedPattern("^(a+)+$", "");
    isStopped(() => pattern.matches(SLOW_TEXT));
  });
});

describe("a JSON schema from outside", () => {
  const object = (property: Record<string, unknown>) =>
    new BoundedSchema({ type: "object", properties: { a: property } }, "the tool test");

  test("reports what is wrong with a value", () => {
    const schema = object({ type: "string", pattern: "^[a-z]+$" });
    assert.deepEqual(schema.problemsOf({ a: "abc" }), []);
    assert.match(
      schema
        .problemsOf({ a: "ABC" })
        .map(({ error }) => error)
        .join(),
      /does not match pattern/,
    );
  });

  test("is stopped when one of its patterns takes for ever", () => {
    const schema = object({ type: "string", pattern: "^(a|a)*$" });
    isStopped(() => schema.problemsOf({ a: SLOW_TEXT }));
  });

  test("is stopped when its pattern of property names takes for ever", () => {
    const schema = new BoundedSchema({ patternProperties: { "^(a+)+$": {} } }, "the tool test");
    isStopped(() => schema.problemsOf({ [SLOW_TEXT]: 1 }));
  });

  test("is stopped when its alternatives double at each level", () => {
    const $defs: Record<string, unknown> = { d26: { type: "string" } };
    for (let level = 0; level < 26; level++) {
      const next = () => ({ $ref: `#/$defs/d${level + 1}` });
      $defs[`d${level}`] = { anyOf: [next(), next()] };
    }
    const schema = () => new BoundedSchema({ $defs, $ref: "#/$defs/d0" }, "the tool test");
    assert.throws(schema, TooSlowError);
  });

  test("is refused when it refers only to itself, or to a definition that does not exist", () => {
    assert.throws(() => new BoundedSchema({ $ref: "#" }, "the tool test"), TooSlowError);
    assert.throws(() => new BoundedSchema({ $ref: "#/$defs/none" }, "the tool test"), Error);
  });
});
