import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { StopScanner } from "./stop-scanner.ts";

/** What is told of a text that comes in pieces. */
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
  test("holds back what may be the beginning of a stop text, and tells it when it is none", () => {
    assert.deepEqual(scan(["END"], ["a E", "N", "x", "y"]).told, ["a ", "", "ENx", "y", ""]);
  });

  test("ends before a stop text that came in pieces", () => {
    assert.deepEqual(scan(["END"], ["a E", "N", "D b"]), { told: ["a ", "", ""], isStopped: true });
  });

  test("takes the stop text that is complete first", () => {
    assert.deepEqual(scan(["c", "ab"], ["xabc"]).told, ["x"]);
    assert.deepEqual(scan(["abc", "b"], ["xabc"]).told, ["xa"]);
  });

  test("tells what was held back when the text ends", () => {
    assert.deepEqual(scan(["END"], ["a EN"]).told, ["a ", "EN"]);
  });

  test("tells the same however the text is cut into pieces", () => {
    const short = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(short, { maxLength: 3 }),
        fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 })),
        (stopTexts, pieces) => {
          const text = pieces.join("");
          // Character by character, the first end of a stop text is seen when it is there.
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
