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
import { evaluateExpression } from "./evaluate-expression.ts";
import { makeSearch, SearchIndex, searchConfigSchema } from "./search.ts";
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
    ["", /a number is expected there: current value is the end/],
    ["1 +", /a number is expected/],
    ["1 2", /the end is expected there: current value is "2"/],
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

  test("leaves what fits", () => {
    const cut = cutAnswer("short", { tokenizer, maxTokens: 5, side: CutSide.middle });
    assert.deepEqual(cut, { text: "short", isCut: false });
  });

  test("never goes beyond its budget, and keeps the sides that it says", () => {
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
  test("a schema whose pattern takes for ever is the model's fault a few times, and then nobody's", () => {
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

  test("takes what fits", () => assert.equal(checker.problemOf({ city: "Paris", days: 2 }), undefined));

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

  test("reads a corpus below its folder, and says which line is wrong", async () => {
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
    await assert.rejects(
      async () => search("b.jsonl"),
      /text as "text": current value is \{"body":"b"\} on line 3/,
    );
    await assert.rejects(async () => search("../a.jsonl"), /a path below/);
  });
});

describe("readToolFile()", () => {
  test("reads verl's files: the schema is what the model sees, the class a registered tool", () => {
    const made: unknown[] = [];
    const tools = readToolFile(
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
      (name, config, at) => {
        made.push([name, config, at]);
        return makeCalculator();
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

  test("turns the paths of Python's classes into names", () => {
    assert.equal(registeredName("verl.tools.search_tool.SearchTool"), "search");
    assert.equal(registeredName("MyOwnTool"), "my_own");
    assert.equal(registeredName("python"), "python");
  });

  test("refuses a file that is none", () => {
    assert.throws(() => readToolFile({ tool: [] }, makeCalculator), /toolFile: tools/);
  });
});
