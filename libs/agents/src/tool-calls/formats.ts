/**
 * The formats in which models write tool calls, one entry each. A model was trained for the first format whose marks all
 * appear in its chat template. `seed`, `minimax`, `kimi` and `glm` have verl's names for them.
 *
 * To add a format, add an entry here, its answers in testing.ts and its template in formats.test.ts.
 */

import { BlockReader } from "./block-reader.ts";
import { gemmaCall } from "./gemma-calls.ts";
import { HarmonyReader } from "./harmony-reader.ts";
import { invokeCalls } from "./invoke-calls.ts";
import { argumentsOf, endOfJsonValue, jsonCalls, jsonObject } from "./json-calls.ts";
import { LeadingReader } from "./leading-reader.ts";
import { pythonCalls, pythonValue } from "./python-calls.ts";
import { type AnswerReader, invalidCall, type ToolSchema, type WrittenCall } from "./tool-call.ts";
import { typedArgument } from "./typed-arguments.ts";

export interface ToolCallFormat {
  /** Texts that the chat templates of such models all contain. */
  readonly marks: readonly string[];
  /** The same for templates of an earlier generation. */
  readonly earlierMarks?: readonly string[];
  /** Whether the model names its calls itself and its template shows these names again, beside the results. @default false */
  readonly hasIds?: boolean;
  open(tools: readonly ToolSchema[]): AnswerReader;
}

/** Formats by name, in the order in which they are looked for in a template. */
const FORMATS = {
  /** `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>` */
  gpt_oss: { marks: ["<|channel|>", "<|message|>"], open: () => new HarmonyReader() },
  /** `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`; V3 and R1 write the arguments in a block of code. */
  deepseek: {
    marks: ["<｜tool▁call▁begin｜>"],
    open: () =>
      new BlockReader({
        blocks: [{ begin: "<｜tool▁call▁begin｜>", end: "<｜tool▁call▁end｜>" }],
        ignored: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
        read: readDeepseek,
      }),
  },
  /**
   * `<｜DSML｜tool_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter></｜DSML｜invoke>
   * </｜DSML｜tool_calls>`, as encoding/README.md beside the weights of DeepSeek-V4 has it. V3.2 wrote `function_calls` around
   * the same calls, and V4.1 writes `<｜DSML｜ calls>`. DeepSeek ships these models without a Jinja template, so a template
   * that shows them comes from others.
   */
  deepseek_v4: {
    marks: ["｜DSML｜"],
    open: (tools) =>
      new BlockReader({
        blocks: [
          { begin: "<｜DSML｜tool_calls>", end: "</｜DSML｜tool_calls>" },
          { begin: "<｜DSML｜function_calls>", end: "</｜DSML｜function_calls>" },
          { begin: "<｜DSML｜ calls>", end: "</｜DSML｜ calls>" },
        ],
        read: (body) => invokeCalls(body, tools, { prefix: "｜DSML｜" }),
      }),
  },
  /** `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`; the first templates of Kimi K2 show tools, and no calls. */
  kimi: {
    marks: ["<|tool_call_argument_begin|>"],
    earlierMarks: ["<|im_system|>tool_declare"],
    hasIds: true,
    open: () =>
      new BlockReader({
        blocks: [{ begin: "<|tool_call_begin|>", end: "<|tool_call_end|>" }],
        ignored: ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
        read: readKimi,
      }),
  },
  /** `<minimax:tool_call><invoke name="f"><parameter name="a">1</parameter></invoke></minimax:tool_call>` */
  minimax: {
    marks: ["<minimax:tool_call>"],
    open: (tools) =>
      new BlockReader({
        blocks: [{ begin: "<minimax:tool_call>", end: "</minimax:tool_call>" }],
        read: (body) => invokeCalls(body, tools, { prefix: "" }),
      }),
  },
  /** `<|tool_call>call:f{a:1}<tool_call|>`; FunctionGemma writes `<start_function_call>call:f{a:1}<end_function_call>`. */
  gemma: {
    marks: ["<|tool_call>"],
    earlierMarks: ["<start_function_call>"],
    open: () =>
      new BlockReader({
        blocks: [
          { begin: "<|tool_call>", end: "<tool_call|>" },
          { begin: "<start_function_call>", end: "<end_function_call>" },
        ],
        thoughts: { begin: "<|channel>", end: "<channel|>" },
        read: (body, begin) => [gemmaCall(body, begin === "<|tool_call>" ? '<|"|>' : "<escape>")],
      }),
  },
  /**
   * `<seed:tool_call><function=f><parameter=a>1</parameter></function></seed:tool_call>`. The template of Seed-OSS shows values
   * as Python prints them, and the model writes them so: `True`, `['a']`.
   */
  seed: {
    marks: ["<seed:tool_call>"],
    open: (tools) =>
      new BlockReader({
        blocks: [{ begin: "<seed:tool_call>", end: "</seed:tool_call>" }],
        thoughts: { begin: "<seed:think>", end: "</seed:think>" },
        read: (body) => readFunctionTags(body, tools, pythonValue),
      }),
  },
  /** `<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>` */
  glm: {
    marks: ["<arg_key>"],
    open: (tools) => new BlockReader({ blocks: [TOOL_CALL], read: (body) => readGlm(body, tools) }),
  },
  /** `<tool_call><function=f><parameter=a>1</parameter></function></tool_call>`; models sometimes leave out the outer marks. */
  qwen3_coder: {
    marks: ["<function="],
    open: (tools) =>
      new BlockReader({
        blocks: [TOOL_CALL, { begin: "<function=", end: "</function>" }],
        read: (body, begin) => readFunctionTags(begin === "<function=" ? `${begin}${body}` : body, tools),
      }),
  },
  /** `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, since version 11 `[TOOL_CALLS]f[ARGS]{…}`. */
  mistral: {
    marks: ["[TOOL_CALLS]"],
    open: () =>
      new BlockReader({
        blocks: [{ begin: "[TOOL_CALLS]", end: undefined }],
        read: (body) => readMistral(body),
      }),
  },
  /** `<tool_call>{"name": …, "arguments": {…}}</tool_call>` */
  hermes: {
    marks: ["<tool_call>"],
    open: () => new BlockReader({ blocks: [TOOL_CALL], read: (body) => jsonCalls(body) }),
  },
  /** `[f(a=1), g()]` as the whole answer, or between `<|python_start|>` and `<|python_end|>`. */
  pythonic: {
    marks: ["[func_name1(params_name1="],
    open: () =>
      new LeadingReader(
        "[",
        pythonCalls,
        new BlockReader({
          blocks: [{ begin: "<|python_start|>", end: "<|python_end|>" }],
          read: (body) => pythonCalls(body) ?? [invalidCall(body, "is no list of calls")],
        }),
      ),
  },
  /** `{"name": …, "parameters": {…}}` as the whole answer, or after `<|python_tag|>`. */
  llama3_json: {
    marks: ["ipython", '"parameters"'],
    open: () =>
      new LeadingReader(
        "{",
        (text) => (text.includes('"name"') ? callsOnly(readLlama(text)) : undefined),
        new BlockReader({
          blocks: [{ begin: "<|python_tag|>", end: undefined }],
          read: (body) => readLlama(body),
        }),
      ),
  },
} satisfies Readonly<Record<string, ToolCallFormat>>;

export type ToolCallFormatName = keyof typeof FORMATS;

export const TOOL_CALL_FORMATS: Readonly<Record<ToolCallFormatName, ToolCallFormat>> = FORMATS;

export const TOOL_CALL_FORMAT_NAMES = Object.keys(TOOL_CALL_FORMATS) as ToolCallFormatName[];

/** The format for models whose template shows none. */
export const DEFAULT_TOOL_CALL_FORMAT: ToolCallFormatName = "hermes";

/** The format that a chat template shows. */
export function formatOfTemplate(chatTemplate: string | undefined): ToolCallFormatName {
  const isShown = (name: ToolCallFormatName) => {
    const { marks, earlierMarks = marks } = TOOL_CALL_FORMATS[name];
    return [marks, earlierMarks].some((each) => each.every((mark) => chatTemplate?.includes(mark) === true));
  };
  return TOOL_CALL_FORMAT_NAMES.find(isShown) ?? DEFAULT_TOOL_CALL_FORMAT;
}

/** The parts of a whole answer. */
export interface ReadAnswer {
  /** The text beside the calls, trimmed; without calls, the whole text unchanged. */
  readonly content: string;
  /** The same text with the space around it. */
  readonly fullContent: string;
  readonly thoughts: string;
  readonly calls: readonly WrittenCall[];
}

/** Reads a whole answer. */
export function readAnswer(
  format: ToolCallFormatName,
  text: string,
  tools: readonly ToolSchema[],
): ReadAnswer {
  const reader = TOOL_CALL_FORMATS[format].open(tools);
  let fullContent = "";
  let thoughts = "";
  const calls: WrittenCall[] = [];
  for (const piece of [...reader.push(text), ...reader.end()]) {
    if (piece.kind === "text") fullContent += piece.text;
    else if (piece.kind === "thought") thoughts += piece.text;
    else calls.push(piece);
  }
  const content = calls.length === 0 ? fullContent : fullContent.trim();
  return { content, fullContent, thoughts, calls };
}

const TOOL_CALL = { begin: "<tool_call>", end: "</tool_call>" } as const;

function readDeepseek(body: string): WrittenCall[] {
  const [before = "", ...rest] = body.split("<｜tool▁sep｜>");
  if (rest.length === 0) return [invalidCall(body, "has no <｜tool▁sep｜>")];
  const after = rest.join("<｜tool▁sep｜>");
  const fenced = /^\s*(\S+)\s*\n```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/.exec(after);
  const [name, json] = fenced === null ? [before.trim(), after] : [fenced[1] ?? "", fenced[2] ?? ""];
  const given = argumentsOf(json);
  if (name === "") return [invalidCall(body, "has no name")];
  if (given === undefined) return [invalidCall(body, `calls ${name} with arguments that are no JSON object`)];
  return [{ kind: "call", name, arguments: given }];
}

function readKimi(body: string): WrittenCall[] {
  const [id = "", ...rest] = body.split("<|tool_call_argument_begin|>");
  if (rest.length === 0) return [invalidCall(body, "has no <|tool_call_argument_begin|>")];
  const [, name = ""] = /^(?:functions\.)?(.*?)(?::\d+)?$/s.exec(id.trim()) ?? [];
  if (name === "") return [invalidCall(body, "has no name")];
  const given = argumentsOf(rest.join("<|tool_call_argument_begin|>"));
  if (given === undefined) return [invalidCall(body, `calls ${name} with arguments that are no JSON object`)];
  return [{ kind: "call", name, arguments: given, id: id.trim() }];
}

function readGlm(body: string, tools: readonly ToolSchema[]): WrittenCall[] {
  const name = (/^[^<\n]*/.exec(body.trimStart())?.[0] ?? "").trim();
  if (name === "") return [invalidCall(body, "has no name")];
  const given: Record<string, unknown> = {};
  for (const [, key = "", value = ""] of body.matchAll(
    /<arg_key>([\s\S]*?)<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>/g,
  )) {
    given[key.trim()] = typedArgument(tools, name, key.trim(), value);
  }
  return [{ kind: "call", name, arguments: given }];
}

function readFunctionTags(
  body: string,
  tools: readonly ToolSchema[],
  readOther?: (text: string) => unknown,
): WrittenCall[] {
  const name = /<function=([^>\n]+)>/.exec(body)?.[1]?.trim();
  if (name === undefined || name === "") return [invalidCall(body, "has no <function=NAME>")];
  const given: Record<string, unknown> = {};
  for (const [, key = "", value = ""] of body.matchAll(/<parameter=([^>\n]+)>([\s\S]*?)<\/parameter>/g)) {
    // A line break next to a mark belongs to the format; all others belong to the value.
    const text = value.replace(/^\n/, "").replace(/\n$/, "");
    given[key.trim()] = typedArgument(tools, name, key.trim(), text, readOther);
  }
  return [{ kind: "call", name, arguments: given }];
}

function readMistral(body: string): readonly WrittenCall[] {
  const named = /^\s*([^\s[{]+)\s*(?:\[CALL_ID\]([^[\s]+))?\s*(?:\[ARGS\])?\s*(\{[\s\S]*)$/.exec(body);
  if (named === null) {
    // Text may follow the list if the model does not stop.
    const text = body.trimStart();
    return jsonCalls(text.slice(0, endOfJsonValue(text) ?? text.length));
  }
  const [, name = "", id, json = ""] = named;
  const given = jsonObject(json.slice(0, endOfJsonValue(json) ?? json.length));
  if (given === undefined) return [invalidCall(body, `calls ${name} with arguments that are no JSON object`)];
  return [{ kind: "call", name, arguments: given, ...(id !== undefined && { id }) }];
}

/** Several objects are separated by semicolons or line breaks. */
function readLlama(text: string): WrittenCall[] {
  const calls: WrittenCall[] = [];
  let rest = text.trim();
  while (rest !== "") {
    const end = rest.startsWith("{") || rest.startsWith("[") ? endOfJsonValue(rest) : undefined;
    calls.push(...jsonCalls(rest.slice(0, end ?? rest.length)));
    rest = end === undefined ? "" : rest.slice(end).replace(/^[\s;]+/, "");
  }
  return calls;
}

/** A whole answer in JSON is read as calls only if it contains a call; otherwise it is text. */
function callsOnly(calls: readonly WrittenCall[]): readonly WrittenCall[] | undefined {
  return calls.some(({ kind }) => kind === "call") ? calls : undefined;
}
