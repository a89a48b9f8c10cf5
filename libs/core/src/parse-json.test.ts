import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { MAX_JSON_DEPTH, parseJson } from "./parse-json.ts";

describe("parseJson()", () => {
  test("returns what JSON.parse() returns", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => assert.deepEqual(parseJson(text), JSON.parse(text))),
      fuzz(300),
    );
  });

  test("refuses JSON that is nested too deep, and ignores brackets within strings", () => {
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}"[[[\\"]]]\\\\"${"}]".repeat(depth / 2)}`;
    parseJson(nested(MAX_JSON_DEPTH));
    assert.throws(() => parseJson(nested(MAX_JSON_DEPTH + 2)), /SyntaxError: nested deeper than 64 levels/);
    assert.throws(() => parseJson("[".repeat(1e6) + "]".repeat(1e6)), SyntaxError);
    parseJson(JSON.stringify("[".repeat(1_000)));
  });
});
