import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { holdsControlToken, holdsLoop, otherScriptShare } from "./text-checks.ts";

describe("holdsLoop()", () => {
  test("finds any sequence of up to 20 words that is repeated ten times in a row, anywhere in the text", () => {
    const word = fc.stringMatching(/^[a-z]{1,5}$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 20 }), fc.lorem(), fc.lorem(), (loop, a, b) => {
        assert.ok(holdsLoop(`${a} ${`${loop.join(" ")} `.repeat(10)} ${b}`));
      }),
      fuzz(200),
    );
  });

  test("finds no loop in a text without repetitions", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 300 }), (numbers) => {
        assert.ok(!holdsLoop(numbers.map((number, index) => `${index}:${number}`).join(" ")));
      }),
      fuzz(100),
    );
  });

  test("takes time in proportion to the text", () => {
    const before = process.cpuUsage();
    for (const text of ["a ".repeat(9) + "b ".repeat(9), "ab", "x y z ", "<|im_"]) {
      holdsLoop(`${text}. `.repeat(5) + text.repeat(1).padEnd(200_000, "lorem ipsum 1234567"));
      holdsControlToken(text.repeat(50_000));
    }
    assert.ok(process.cpuUsage(before).user < 3_000_000);
  });
});

describe("otherScriptShare()", () => {
  test("is the share of letters of other scripts", () => {
    assert.equal(otherScriptShare("aaaж", ["Latin"]), 0.25);
    assert.equal(otherScriptShare("aaaж", ["Latin", "Cyrillic"]), 0);
    assert.equal(otherScriptShare("123 + 4 = !", ["Latin"]), 0);
  });
});
