import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  formatOfTemplate,
  readAnswer,
  TOOL_CALL_FORMAT_NAMES,
  TOOL_CALL_FORMATS,
  type ToolCallFormatName,
} from "./formats.ts";
import { BROKEN, CASES, call, TOOLS } from "./testing.ts";
import type { AnswerPiece } from "./tool-call.ts";

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

    test("gives the same pieces character by character", () => {
      for (const text of [...CASES[name].map((each) => each.text), ...BROKEN[name].map(([each]) => each)]) {
        const everyCharacter = Array.from({ length: text.length }, (_, i) => i);
        assert.deepEqual(streamed(name, text, everyCharacter), streamed(name, text, []), text);
      }
    });

    test("reads any text without failing, token by token or at once", () => {
      const { marks, earlierMarks = [] } = TOOL_CALL_FORMATS[name];
      const part = fc.oneof(
        fc.string({ maxLength: 12 }),
        fc.constantFrom(
          ...marks,
          ...earlierMarks,
          "<tool_call>",
          "</tool_call>",
          "<think>",
          "</think>",
          '<invoke name="f">',
          "</invoke>",
          "call:f{",
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
    ["{% set dsml_token = '｜DSML｜' %}<{{ dsml_token }}tool_calls>", "deepseek_v4"],
    ["<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>", "kimi"],
    ["{{ '<|im_system|>tool_declare<|im_middle|>' }}{{ tools | tojson }}", "kimi"],
    ["{% set begin = '<minimax:tool_call>' %}<invoke name=", "minimax"],
    ["{{ '<|tool_call>call:' }}", "gemma"],
    ["{{ '<start_function_call>call:' }}", "gemma"],
    ["<seed:tool_call>\\n<function=example>", "seed"],
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
