import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { StopScanner } from "./stop-scanner.ts";

/** Scans a text that arrives in pieces. @returns the released texts. */
function scan(stopTexts: readonly string[], pieces: readonly string[]) {
  const scanner = new StopScanner(stopTexts);
  const told: string[] = [];
  for (const piece of pieces) {
    const { text, isStopped } = scanner.push(piece);
    told.push(text);
    if (isStopped) return { told, isStopped };
  }
  return { told: [...told, scanner.flush()], isStopped: false };
}

describe("StopScanner", () => {
  test("holds back a possible beginning of a stop text and releases it when it is none", () => {
    assert.deepEqual(scan(["END"], ["a E", "N", "x", "y"]).told, ["a ", "", "ENx", "y", ""]);
  });

  test("ends before a stop text that arrived in pieces", () => {
    assert.deepEqual(scan(["END"], ["a E", "N", "D b"]), { told: ["a ", "", ""], isStopped: true });
  });

  test("stops at the stop text that is complete first", () => {
    assert.deepEqual(scan(["c", "ab"], ["xabc"]).told, ["x"]);
    assert.deepEqual(scan(["abc", "b"], ["xabc"]).told, ["xa"]);
  });

  test("releases what was held back when the text ends", () => {
    assert.deepEqual(scan(["END"], ["a EN"]).told, ["a ", "EN"]);
  });

  test("releases the same text however it is split into pieces", () => {
    const short = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(short, { maxLength: 3 }),
        fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 })),
        (stopTexts, pieces) => {
          const text = pieces.join("");
          // Checking character by character finds the first end of a stop text.
          const ends = Array.from({ length: text.length }, (_, i) => text.slice(0, i + 1));
          const whole = ends.find((begin) => stopTexts.some((stop) => begin.endsWith(stop)));
          const cut = stopTexts.filter((stop) => whole?.endsWith(stop)).map(({ length }) => length);
          const expected = whole === undefined ? text : whole.slice(0, whole.length - Math.max(...cut));
          const { told, isStopped } = scan(stopTexts, pieces);
          assert.deepEqual([told.join(""), isStopped], [expected, whole !== undefined]);
        },
      ),
    );
  });
});
