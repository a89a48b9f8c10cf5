import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import fc from "fast-check";
import { InfrastructureError } from "../errors.ts";
import { makeCalculator } from "./calculator.ts";
import { ArgumentChecker } from "./check-arguments.ts";
import { CutSide, cutAnswer } from "./cut-answer.ts";
import { ExpressionError, evaluateExpression } from "./evaluate-expression.ts";
import { makeSearch, searchConfigSchema } from "./search.ts";
import { SearchIndex } from "./search-index.ts";
import { readToolFile, registeredName } from "./tool-file.ts";

const context = {
  state: undefined,
  signal: new AbortController().signal,
  wait: <T>(work: () => Promise<T>) => work(),
};

describe("calculator", () => {
  for (const [expression, value] of [
    ["1 + 2 * 3", 7],
    ["(1 + 2) * 3", 9],
    ["-2 ^ 2", -4],
    ["2 ** 3 ** 2", 512],
    ["7 % 4 - -1", 4],
    ["1,234.5 × 2 − $1", 2468],
    ["sqrt(16) + max(1, 2, 3) / .5", 10],
    ["2 * pi - 2*pi", 0],
    ["1.5e3", 1500],
  ] as const) {
    test(`${expression} is ${value}`, () => assert.equal(evaluateExpression(expression), value));
  }

  for (const [expression, rule] of [
    ["", /a number is expected/],
    ["1 +", /Expected expression after \+/],
    ["1 2", /one expression is expected, not several/],
    ["process.exit()", /arithmetic expression|one of pi/],
    ["constructor(1)", /a name must be one of/],
    ["1 / 0", /divided by 0/],
    ["10 ^ 400", /finite number/],
    [`${"(".repeat(500)}1`, /nested/],
    [`${"2^".repeat(500)}1`, /nested/],
    ["1+".repeat(2_000), /2000 characters/],
  ] as const) {
    test(`refuses ${expression.slice(0, 20)}`, () =>
      assert.throws(() => evaluateExpression(expression), rule));
  }

  for (const text of [
    "__proto__",
    "toString()",
    "hasOwnProperty(1)",
    "sqrt.constructor('return process')()",
    "constructor.constructor('return 1')()",
    "sqrt['call'](1)",
    "sqrt?.(4).x",
    "this",
    "'4'",
    "'a' + 'b'",
    "`4`",
    "sqrt`4`",
    "[4][0]",
    "[1, 2]",
    "{a: 1}",
    "1 ? 2 : 3",
    "x = 1",
    "x => 1",
    "new Date()",
    "function f() {}",
    "(1, 2)",
    "1; 2",
    "1 // 2",
    "/1/",
    "!1",
    "~1",
    "1 == 1",
    "1 << 2",
    "1 && 2",
    "typeof 1",
    "true",
    "null",
    "0x10",
    "1n",
    "1_000",
    "1..2",
    "2e",
    "max()",
    "sqrt",
    "pi(1)",
    "\u0000",
    "\u{1f600}",
    `${"-".repeat(1_999)}1`,
    `${"sqrt(".repeat(390)}1`,
    `${"2^-".repeat(600)}1`,
  ]) {
    test(`has no value for ${JSON.stringify(text).slice(0, 40)}`, () =>
      assert.throws(() => evaluateExpression(text), ExpressionError));
  }

  test("evaluates a sum of the greatest length that an expression may have", () => {
    assert.equal(evaluateExpression(`${"1+".repeat(999)}1`), 1_000);
    assert.equal(evaluateExpression(`max(${"1,".repeat(900)}2)`), 2);
  });

  test("gives a finite number or an ExpressionError for any text, and works again after an error", () => {
    const part = fc.constantFrom(
      ..."0123456789.,+-*/%^()[]{}'\"`?:;= $eipE×÷−",
      "sqrt(",
      "max(",
      "**",
      "pi",
      "__proto__",
    );
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.array(part, { maxLength: 80 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (any) => {
        try {
          assert.ok(Number.isFinite(evaluateExpression(any)));
        } catch (error) {
          assert.ok(error instanceof ExpressionError, String(error));
        }
        assert.equal(evaluateExpression("2 * (3 + 4)"), 14);
      }),
      { numRuns: 1_000, seed: 7 },
    );
  });

  test("agrees with JavaScript on any sum and product", () => {
    const number = fc.integer({ min: 1, max: 999 }).map(String);
    const [parts] = [fc.array(fc.tuple(fc.constantFrom("+", "-", "*", "/"), number), { maxLength: 8 })];
    fc.assert(
      fc.property(number, parts, (first, rest) => {
        const text = first + rest.map(([mark, value]) => ` ${mark} ${value}`).join("");
        const wanted = new Function(`return ${text}`)() as number;
        assert.equal(evaluateExpression(text), wanted);
      }),
      { numRuns: 200, seed: 7 },
    );
  });

  test("shows twelve digits, so that 0.1 + 0.2 is 0.3", async () => {
    assert.equal(await makeCalculator().call({ expression: "0.1 + 0.2" }, context), "0.3");
  });
});

describe("cutAnswer()", () => {
  const tokenizer = chatmlTokenizer();

  test("leaves an answer that fits unchanged", () => {
    const cut = cutAnswer("short", { tokenizer, maxTokens: 5, side: CutSide.middle });
    assert.deepEqual(cut, { text: "short", isCut: false });
  });

  test("never exceeds its budget, and keeps the sides that were asked for", () => {
    const budget = fc.integer({ min: 1, max: 120 });
    const side = fc.constantFrom(CutSide.left, CutSide.middle, CutSide.right);
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 600 }),
        budget,
        side,
        (text, maxTokens, cutSide) => {
          const cut = cutAnswer(text, { tokenizer, maxTokens, side: cutSide });
          assert.equal(cut.isCut, tokenizer.encode(text).length > maxTokens);
          assert.ok(tokenizer.encode(cut.text).length <= maxTokens, cut.text);
          const [before = "", after = ""] = cut.text.split(/\n?\[\.\.\. .*tokens cut \.\.\.\]\n?/);
          if (!cut.isCut || !/tokens cut \.\.\.\]/.test(cut.text)) return;
          assert.ok(text.startsWith(before) && text.endsWith(after));
          if (cutSide === CutSide.left) assert.equal(before, "");
          if (cutSide === CutSide.right) assert.equal(after, "");
        },
      ),
      { numRuns: 300, seed: 7 },
    );
  });
});

describe("ArgumentChecker", () => {
  test("when a schema's pattern never ends, the first errors go to the model and later ones fail the attempt", () => {
    const slow = new ArgumentChecker(
      { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } },
      "weather",
    );
    const problem = () => slow.problemOf({ a: `${"a".repeat(40)}!` });
    for (let count = 0; count < 2; count++) assert.match(problem() ?? "", /could not be checked in time/);
    for (let count = 0; count < 2; count++) assert.throws(problem, InfrastructureError);
  });

  const checker = new ArgumentChecker(
    {
      type: "object",
      properties: {
        city: { type: "string" },
        days: { type: "integer", minimum: 1 },
        where: { type: "object", properties: { x: { type: "number" } } },
      },
      required: ["city"],
      additionalProperties: false,
    },
    "weather",
  );

  test("accepts arguments that fit", () =>
    assert.equal(checker.problemOf({ city: "Paris", days: 2 }), undefined));

  for (const [args, problem] of [
    [{}, /city/],
    [{ city: 7 }, /^city: .*string/],
    [{ city: "Paris", days: 0 }, /^days: /],
    [{ city: "Paris", planet: "Earth" }, /planet/],
    [{ city: "Paris", where: { x: "a" } }, /where\.x: /],
  ] as const) {
    test(`says what is wrong with ${JSON.stringify(args)}`, () => {
      assert.match(checker.problemOf(args) ?? "", problem);
    });
  }
});

describe("search", () => {
  const passages = [
    { title: "Cats", text: "A cat sleeps most of the day." },
    { title: "Dogs", text: "A dog sleeps less than a cat, and barks." },
    { title: "", text: "Frozen lakes are slippery." },
  ];

  test("finds the passages that fit best, rare words first", () => {
    const index = new SearchIndex(passages);
    assert.deepEqual(
      index.search("does a DOG bark? barks!", 2).map(({ title }) => title),
      ["Dogs", "Cats"],
    );
    assert.deepEqual(index.search("quantum", 3), []);
  });

  test("orders passages with equal scores as the corpus does, whatever the order of the words", () => {
    const equals = Array.from({ length: 30 }, (_, i) => ({ title: `${i}`, text: "ice and snow" }));
    const index = new SearchIndex(equals);
    for (const query of ["ice snow", "snow ICE ice", "and"])
      assert.deepEqual(index.search(query, 5), equals.slice(0, 5), query);
  });

  test("ranks by BM25", () => {
    const texts = ["red fox", "red red red", "a fox in a long text about nothing else at all", "blue"];
    const index = new SearchIndex(texts.map((text) => ({ title: "", text })));
    const words = texts.map((text) => text.split(" "));
    const mean = words.flat().length / words.length;
    const score = (passage: readonly string[], query: readonly string[]) =>
      query.reduce((sum, word) => {
        const count = passage.filter((each) => each === word).length;
        const numWith = words.filter((each) => each.includes(word)).length;
        const rarity = Math.log(1 + (words.length - numWith + 0.5) / (numWith + 0.5));
        return sum + (rarity * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * passage.length) / mean));
      }, 0);
    for (const query of ["red", "fox", "red fox", "text fox", "blue red"]) {
      const asked = query.split(" ");
      const wanted = words
        .map((passage, i) => ({ text: texts[i], score: score(passage, asked) }))
        .filter((each) => each.score > 0)
        .sort((a, b) => b.score - a.score);
      assert.deepEqual(
        index.search(query, 9).map(({ text }) => text),
        wanted.map(({ text }) => text),
        query,
      );
    }
  });

  test("a query has no operators, and names such as constructor are ordinary words", () => {
    const index = new SearchIndex([{ title: "", text: "the constructor of __proto__" }, ...passages]);
    for (const query of ["*", '"', "AND OR NOT", "cat* -dog", "~", ""]) index.search(query, 3);
    assert.equal(index.search("constructor", 3).length, 1);
    assert.deepEqual(index.search("toString hasOwnProperty", 3), []);
  });

  test("reads a corpus below its folder, and names the line that is wrong", async () => {
    await using folder = await temporaryFolder("corpus");
    await writeFile(
      path.join(folder.path, "a.jsonl"),
      passages.map((each) => `${JSON.stringify(each)}\n`).join(""),
    );
    await writeFile(path.join(folder.path, "b.jsonl"), '{"text":"a"}\n\n{"body":"b"}\n');
    const search = (corpus: string) =>
      makeSearch(searchConfigSchema.parse({ corpus, maxResults: 1 }), folder.path).call(
        { query: "cat day" },
        context,
      );
    assert.equal(await search("a.jsonl"), "[1] Cats\nA cat sleeps most of the day.");
    await assert.rejects(async () => search("b.jsonl"), /text as "text", but line 3 is \{"body":"b"\}/);
    await assert.rejects(async () => search("../a.jsonl"), /a path below/);
  });
});

describe("readToolFile()", () => {
  test("reads verl's files: the model sees the schema, and the class names a registered tool", async () => {
    const made: unknown[] = [];
    const tools = await readToolFile(
      {
        tools: [
          {
            class_name: "verl.tools.sandbox_fusion_tools.CodeInterpreterTool",
            config: { type: "native", timeMs: 100 },
            tool_schema: {
              type: "function",
              function: {
                name: "code_interpreter",
                description: "Runs code",
                parameters: { type: "object" },
              },
            },
          },
          { class_name: "calculator", config: null },
        ],
      },
      async (name, config, at) => {
        made.push([name, config, at]);
        return [makeCalculator()];
      },
    );
    assert.deepEqual(made, [
      ["code_interpreter", { timeMs: 100 }, "toolFile: tools.0.class_name"],
      ["calculator", {}, "toolFile: tools.1.class_name"],
    ]);
    assert.deepEqual(
      tools.map(({ name, description }) => [name, description.slice(0, 9)]),
      [
        ["code_interpreter", "Runs code"],
        ["calculator", "Evaluates"],
      ],
    );
  });

  test("turns paths of Python classes into names of tools", () => {
    assert.equal(registeredName("verl.tools.search_tool.SearchTool"), "search");
    assert.equal(registeredName("MyOwnTool"), "my_own");
    assert.equal(registeredName("python"), "python");
  });

  test("refuses content that does not fit the format", async () => {
    await assert.rejects(
      readToolFile({ tool: [] }, async () => [makeCalculator()]),
      /toolFile: tools/,
    );
  });
});
