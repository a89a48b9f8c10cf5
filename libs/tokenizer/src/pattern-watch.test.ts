import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EncodingLimitError, TokenizerLoadError } from "./errors.ts";
import { makeTokenizer } from "./load-tokenizer.ts";
import { PatternWatch } from "./pattern-watch.ts";
import { chatmlTokenizer, chatmlTokenizerFiles } from "./testing.ts";

/** The expressions of the families, as in their tokenizer.json. */
const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const END = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const FAMILIES = {
  "GPT-2": "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  "Llama 3": `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}${END}`,
  Qwen: `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${END}`,
};
/** An expression that finishes at once on the probes of a tokenizer, but practically never on this text. */
const LATE_BOMB = "(x+x+)+y";
const LATE_TEXT = `${"x".repeat(60)}z`;

const split = (expression: string) => ({
  type: "Split",
  pattern: { Regex: expression },
  behavior: "Isolated",
  invert: false,
});

/** The files of the tests' byte tokenizer with another expression. */
function filesWith(part: "pre_tokenizer" | "normalizer", value: object): Record<string, string> {
  const files = chatmlTokenizerFiles();
  const tokenizer = JSON.parse(files["tokenizer.json"]!) as Record<string, unknown>;
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
  const changed =
    part === "normalizer"
      ? { ...tokenizer, normalizer: value }
      : { ...tokenizer, pre_tokenizer: { type: "Sequence", pretokenizers: [value, bytes] } };
  return { ...files, "tokenizer.json": JSON.stringify(changed) };
}

describe("PatternWatch", () => {
  const partsWith = (expression: string) => [undefined, { pretokenizers: [split(expression)] }];

  test("watches unknown expressions and no others", () => {
    assert.ok(new PatternWatch(partsWith("\\w+|\\W+")).isWatching);
    for (const expression of Object.values(FAMILIES)) {
      assert.ok(!new PatternWatch(partsWith(expression)).isWatching, expression);
    }
    assert.ok(!new PatternWatch([null, { type: "ByteLevel", use_regex: true }]).isWatching);
  });

  test("interrupts work once and refuses all later work", () => {
    const watch = new PatternWatch(partsWith(LATE_BOMB), { baseMs: 50 });
    let numCalls = 0;
    const match = (text: string) =>
      watch.run(text.length, () => {
        numCalls++;
        return new RegExp(LATE_BOMB).test(text);
      });
    assert.equal(match("xxy"), true);
    for (let i = 0; i < 3; i++) assert.throws(() => match(LATE_TEXT), EncodingLimitError);
    assert.throws(
      () => match("xxy"),
      /Cannot encode a text of 61 characters: the regular expressions of its tokenizer took more than 57 ms/,
    );
    assert.equal(numCalls, 2);
  });

  test("allows a long text more time", () => {
    const watch = new PatternWatch(partsWith(LATE_BOMB), { baseMs: 1 });
    const until = (ms: number) => {
      const end = performance.now() + ms;
      while (performance.now() < end);
      return "done";
    };
    assert.equal(
      watch.run(100_000, () => until(20)),
      "done",
    );
    assert.throws(() => watch.run(0, () => until(5_000)), EncodingLimitError);
  });
});

describe("a tokenizer with unknown regular expressions", () => {
  test("encodes and decodes as without a time limit", () => {
    const own = makeTokenizer(filesWith("pre_tokenizer", split("\\p{L}+|\\s+|[^\\p{L}\\s]+")), "a test");
    const text = "in the lake: 42é😀\n\n";
    assert.equal(own.decode(own.encode(text)), text);
    assert.deepEqual(own.encode("the"), chatmlTokenizer().encode("the"));
  });

  for (const [what, files] of [
    ["splits texts", filesWith("pre_tokenizer", split("^(\\p{L}+\\s?)*$"))],
    [
      "replaces in texts",
      filesWith("normalizer", { type: "Replace", pattern: { Regex: "(\\S+)+$\\d" }, content: "" }),
    ],
  ] as const) {
    test(`is refused at loading if an expression that ${what} does not finish`, () => {
      const before = performance.now();
      assert.throws(
        () => makeTokenizer(files, "a test"),
        (error) => {
          assert.ok(error instanceof TokenizerLoadError);
          assert.ok(error.cause instanceof EncodingLimitError, String(error.cause));
          return true;
        },
      );
      assert.ok(performance.now() - before < 30_000);
    });
  }

  test("expressions of the families take time in proportion to the text", () => {
    const nasty = ["a", " ", "\n ", " \t", "1", "-", "'s", "é", ".\n", "😀"];
    const before = process.cpuUsage();
    for (const expression of Object.values(FAMILIES)) {
      const compiled = new RegExp(expression.replace("(?i:", "(?:"), "gu");
      for (const piece of nasty) {
        const text = `${piece.repeat(100_000)}!`;
        let length = 0;
        for (const match of text.matchAll(compiled)) length += match[0].length;
        assert.equal(length, text.length);
      }
    }
    assert.ok(process.cpuUsage(before).user < 10_000_000, `${process.cpuUsage(before).user} µs`);
  });
});
