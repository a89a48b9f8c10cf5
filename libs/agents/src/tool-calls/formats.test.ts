import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  formatOfTemplate,
  type ReadAnswer,
  readAnswer,
  TOOL_CALL_FORMAT_NAMES,
  TOOL_CALL_FORMATS,
  type ToolCallFormatName,
} from "./formats.ts";
import type { AnswerPiece, ToolSchema } from "./tool-call.ts";

const TOOLS: readonly ToolSchema[] = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string" },
        days: { type: "integer" },
        units: { type: "array", items: { type: "string" } },
        isDetailed: { type: "boolean" },
      },
      required: ["city"],
    },
  },
];

const PARIS = { city: "Paris", days: 3 };
const call = (args: Record<string, unknown> = PARIS, name = "get_weather") =>
  ({ kind: "call", name, arguments: args }) as const;

interface Case {
  readonly what: string;
  readonly text: string;
  readonly content: string;
  readonly thoughts?: string;
  readonly calls: ReadAnswer["calls"];
}

/** Answers as the definitions of the formats show them. */
const CASES: Readonly<Record<ToolCallFormatName, readonly Case[]>> = {
  hermes: [
    {
      what: "a call",
      text: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>',
      content: "",
      calls: [call()],
    },
    {
      what: "text and two calls",
      text: 'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n<tool_call>{"name": "now", "arguments": {}}</tool_call>',
      content: "Let me see.",
      calls: [call(), call({}, "now")],
    },
    {
      what: "arguments as a text",
      text: '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 3}"}</tool_call>',
      content: "",
      calls: [call()],
    },
    {
      what: "a call that is only thought of",
      text: '<think>\n<tool_call>{"name": "now"}</tool_call>?</think>\nNo.',
      content: '<think>\n<tool_call>{"name": "now"}</tool_call>?</think>\nNo.',
      calls: [],
    },
  ],
  qwen3_coder: [
    {
      what: "a call whose values have the types of the schema",
      text: '<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=units>\n["C"]\n</parameter>\n<parameter=isDetailed>\ntrue\n</parameter>\n</function>\n</tool_call>',
      content: "",
      calls: [call({ ...PARIS, units: ["C"], isDetailed: true })],
    },
    {
      what: "a text of several lines, kept as it stands",
      text: "<tool_call>\n<function=run>\n<parameter=code>\nfor i in range(3):\n    print(i)\n\n</parameter>\n</function>\n</tool_call>",
      content: "",
      calls: [call({ code: "for i in range(3):\n    print(i)\n" }, "run")],
    },
    {
      what: "a call without the outer marks",
      text: "Well.\n<function=get_weather><parameter=city>Paris</parameter></function>",
      content: "Well.",
      calls: [call({ city: "Paris" })],
    },
  ],
  llama3_json: [
    {
      what: "a call as the whole answer",
      text: '{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}',
      content: "",
      calls: [call()],
    },
    {
      what: "two calls after the tag",
      text: '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}; {"name": "now", "parameters": {}}',
      content: "",
      calls: [call(), call({}, "now")],
    },
    {
      what: "an answer that is JSON by itself",
      text: '{"city": "Paris", "temperature": 3}',
      content: '{"city": "Paris", "temperature": 3}',
      calls: [],
    },
  ],
  pythonic: [
    {
      what: "calls as the whole answer",
      text: "[get_weather(city=\"Paris\", days=3), set(a=[1, -2.5], b={'x': True, 'y': None}, c='it\\'s')]",
      content: "",
      calls: [call(), call({ a: [1, -2.5], b: { x: true, y: null }, c: "it's" }, "set")],
    },
    {
      what: "calls between marks",
      text: '<|python_start|>[get_weather(city="Paris", days=3)]<|python_end|>',
      content: "",
      calls: [call()],
    },
    { what: "a list that is an answer", text: "[1, 2]", content: "[1, 2]", calls: [] },
  ],
  mistral: [
    {
      what: "a list of calls",
      text: '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}, "id": "abcdefghi"}, {"name": "now", "arguments": {}}]',
      content: "",
      calls: [{ ...call(), id: "abcdefghi" }, call({}, "now")],
    },
    {
      what: "calls of version 11",
      text: 'Well. [TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 3}[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}',
      content: "Well.",
      calls: [call(), { ...call({}, "now"), id: "abcdefghi" }],
    },
  ],
  deepseek: [
    {
      what: "calls of V3 and R1",
      text: '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris", "days": 3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      content: "",
      calls: [call(), call({}, "now")],
    },
    {
      what: "a call of V3.1",
      text: 'Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris", "days": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      content: "Well.",
      calls: [call()],
    },
  ],
  glm: [
    {
      what: "a call with a key and a value each",
      text: "Well.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
      content: "Well.",
      calls: [call()],
    },
    {
      what: "a call without arguments",
      text: "<tool_call>now\n</tool_call>",
      content: "",
      calls: [call({}, "now")],
    },
  ],
  gpt_oss: [
    {
      what: "thoughts and a call",
      text: '<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris", "days": 3}<|call|>',
      content: "",
      thoughts: "The user asks.",
      calls: [call()],
    },
    {
      what: "a call whose recipient comes first and whose end was the stop token",
      text: ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris", "days": 3}',
      content: "",
      calls: [call()],
    },
    {
      what: "an answer",
      text: "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It rains.<|return|>",
      content: "It rains.",
      thoughts: "Easy.",
      calls: [],
    },
  ],
};

/** Texts that cannot be read as a call, and a part of the reason that is given. */
const BROKEN: Readonly<Record<ToolCallFormatName, readonly [text: string, reason: RegExp][]>> = {
  hermes: [
    ["<tool_call>{name: now}</tool_call>", /no JSON/],
    ['<tool_call>{"arguments": {}}</tool_call>', /no "name"/],
    ['<tool_call>{"name": "now", "arguments": 7}</tool_call>', /no JSON object/],
    ['<tool_call>{"name": "now"}', /not closed by <\/tool_call>/],
  ],
  qwen3_coder: [
    ["<tool_call>now()</tool_call>", /<function=NAME>/],
    ["<tool_call><function=now>", /not closed/],
  ],
  llama3_json: [["<|python_tag|>print(1)", /no JSON/]],
  pythonic: [
    ["[now(1)]", /name of an argument/],
    ["[now(a=open)]", /a value instead of open/],
    ["[now(a=1)", /expected/],
  ],
  mistral: [
    ["[TOOL_CALLS]now[ARGS]{", /no JSON object/],
    ["[TOOL_CALLS] what?", /no JSON/],
  ],
  deepseek: [
    ["<｜tool▁call▁begin｜>now<｜tool▁call▁end｜>", /tool▁sep/],
    ["<｜tool▁call▁begin｜>now<｜tool▁sep｜>[]<｜tool▁call▁end｜>", /no JSON object/],
  ],
  glm: [
    ["<tool_call><arg_key>a</arg_key></tool_call>", /no name/],
    ["<tool_call>now", /not closed/],
  ],
  gpt_oss: [["<|channel|>commentary to=functions.now<|message|>{<|call|>", /no JSON object/]],
};

for (const name of TOOL_CALL_FORMAT_NAMES) {
  describe(`the format ${name}`, () => {
    for (const { what, text, content, thoughts = "", calls } of CASES[name]) {
      test(`reads ${what}`, () => {
        const { fullContent: _, ...read } = readAnswer(name, text, TOOLS);
        assert.deepEqual(read, { content, thoughts, calls });
      });
    }

    for (const [text, reason] of BROKEN[name]) {
      test(`says what is wrong with ${text}`, () => {
        const { calls } = readAnswer(name, text, TOOLS);
        assert.equal(calls[0]?.kind, "invalid");
        assert.match(calls[0].kind === "invalid" ? calls[0].reason : "", reason);
      });
    }

    test("leaves an answer without calls unchanged", () => {
      for (const text of ["It rains. 1 < 2 [sic] {so}", " \n", "", "<tool", "[TOOL", "<|chan"]) {
        const plain = { content: text, fullContent: text, thoughts: "", calls: [] };
        assert.deepEqual(readAnswer(name, text, TOOLS), plain);
      }
    });

    test("gives the same pieces wherever the stream is cut", () => {
      const texts = [...CASES[name].map(({ text }) => text), ...BROKEN[name].map(([text]) => text)];
      fc.assert(
        fc.property(
          fc.constantFrom(...texts),
          fc.array(fc.nat({ max: 400 }), { maxLength: 12 }),
          (text, cuts) => {
            assert.deepEqual(streamed(name, text, cuts), streamed(name, text, []));
          },
        ),
        { numRuns: 200, seed: 7 },
      );
    });

    test("reads any text without failing, token by token or at once", () => {
      const { marks } = TOOL_CALL_FORMATS[name];
      const part = fc.oneof(
        fc.string({ maxLength: 12 }),
        fc.constantFrom(
          ...marks,
          "<tool_call>",
          "</tool_call>",
          "<think>",
          "</think>",
          "{",
          "[",
          "(",
          '"',
          "}",
        ),
      );
      fc.assert(
        fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
          const text = parts.join("");
          const everyCharacter = Array.from({ length: text.length }, (_, i) => i);
          assert.deepEqual(streamed(name, text, everyCharacter), streamed(name, text, []));
        }),
        { numRuns: 500, seed: 7 },
      );
    });
  });
}

describe("a stream of an answer", () => {
  test("returns text at once, and holds back only what may be the beginning of a call", () => {
    const reader = TOOL_CALL_FORMATS.hermes.open(TOOLS);
    assert.deepEqual(reader.push("It rains. <"), [{ kind: "text", text: "It rains. " }]);
    assert.deepEqual(reader.push("b>"), [{ kind: "text", text: "<b>" }]);
    assert.deepEqual(reader.push('<tool_call>{"name": "now"}</tool'), []);
    assert.deepEqual(reader.push("_call>"), [call({}, "now")]);
    assert.deepEqual(reader.end(), []);
  });
});

describe("formatOfTemplate()", () => {
  for (const [template, format] of [
    ["{{ '<tool_call>' }}{{ tool | tojson }}", "hermes"],
    ["<tool_call>\n<function=example>", "qwen3_coder"],
    ["<tool_call>{name}\n<arg_key>{key}", "glm"],
    ["{{ '[TOOL_CALLS]' }}", "mistral"],
    ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "deepseek"],
    ["<|start|>assistant<|channel|>final<|message|>", "gpt_oss"],
    ['{"name": f, "parameters": d} ... {{ "ipython" }}', "llama3_json"],
    ["[func_name1(params_name1=params_value1)]", "pythonic"],
    ["{{ message.content }}", "hermes"],
  ] as const) {
    test(`finds ${format} in ${template}`, () => assert.equal(formatOfTemplate(template), format));
  }

  test("uses the default format if there is no template", () => {
    assert.equal(formatOfTemplate(undefined), "hermes");
  });
});

/** The pieces of a stream that is cut at these places, neighbouring texts joined. */
function streamed(name: ToolCallFormatName, text: string, cuts: readonly number[]): AnswerPiece[] {
  const reader = TOOL_CALL_FORMATS[name].open(TOOLS);
  const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length])].sort(
    (a, b) => a - b,
  );
  const pieces = places.slice(1).flatMap((end, i) => reader.push(text.slice(places[i], end)));
  const joined: AnswerPiece[] = [];
  for (const piece of [...pieces, ...reader.end()]) {
    const last = joined.at(-1);
    if (piece.kind !== "call" && piece.kind !== "invalid" && last?.kind === piece.kind) {
      joined[joined.length - 1] = { kind: piece.kind, text: last.text + piece.text };
    } else joined.push(piece);
  }
  return joined;
}
