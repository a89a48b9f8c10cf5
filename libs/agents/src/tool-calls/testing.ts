/** Answers in each format, for its tests. */

import type { ReadAnswer, ToolCallFormatName } from "./formats.ts";
import type { ToolSchema } from "./tool-call.ts";

export const TOOLS: readonly ToolSchema[] = [
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
export const call = (args: Record<string, unknown> = PARIS, name = "get_weather") =>
  ({ kind: "call", name, arguments: args }) as const;

export interface Case {
  readonly what: string;
  readonly text: string;
  readonly content: string;
  readonly thoughts?: string;
  readonly calls: ReadAnswer["calls"];
}

/** Answers as the definitions of the formats show them. */
export const CASES: Readonly<Record<ToolCallFormatName, readonly Case[]>> = {
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
  deepseek_v4: [
    {
      what: "two calls of V4 with texts and other values",
      text: 'Well.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
      content: "Well.",
      calls: [call(), call({}, "now")],
    },
    {
      what: "a call of V3.2, whose text looks like a number and has several lines",
      text: '<｜DSML｜function_calls>\n<｜DSML｜invoke name="run">\n<｜DSML｜parameter name="code" string="true">3\n</｜DSML｜parameter>\n<｜DSML｜parameter name="list" string="false">[1, {"a": null}]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
      content: "",
      calls: [call({ code: "3\n", list: [1, { a: null }] }, "run")],
    },
    {
      what: "a call of V4.1, whose tags have a space",
      text: '<｜DSML｜ calls>\n<｜DSML｜ invoke name="get_weather">\n<｜DSML｜ parameter name="city" string="true">Paris</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
      content: "",
      calls: [call({ city: "Paris" })],
    },
    {
      what: "arguments as one object",
      text: '<｜DSML｜tool_calls><｜DSML｜invoke name="get_weather">\n{"city": "Paris", "days": 3}\n</｜DSML｜invoke></｜DSML｜tool_calls>',
      content: "",
      calls: [call()],
    },
    {
      what: "a call that is only thought of",
      text: "<think>A <｜DSML｜tool_calls>?</think>No.",
      content: "<think>A <｜DSML｜tool_calls>?</think>No.",
      calls: [],
    },
  ],
  kimi: [
    {
      what: "text and two calls with the ids that the model gave",
      text: 'Well.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris", "days": 3}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>',
      content: "Well.",
      calls: [
        { ...call(), id: "functions.get_weather:0" },
        { ...call({}, "now"), id: "functions.now:1" },
      ],
    },
    {
      what: "a call with spaces, whose name has a dot and whose id has no index",
      text: '<|tool_calls_section_begin|> <|tool_call_begin|> files.read <|tool_call_argument_begin|> {"path": "a:1"} <|tool_call_end|> <|tool_calls_section_end|>',
      content: "",
      calls: [{ ...call({ path: "a:1" }, "files.read"), id: "files.read" }],
    },
  ],
  minimax: [
    {
      what: "two calls in one block, with the types of the schema",
      text: 'Well.\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n<parameter name="days">3</parameter>\n<parameter name="units">["C"]</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
      content: "Well.",
      calls: [call({ ...PARIS, units: ["C"] }), call({}, "now")],
    },
    {
      what: "a text of several lines with tags of its own",
      text: '<minimax:tool_call><invoke name="run"><parameter name="code">\n<b>"1"</b>\n</parameter></invoke></minimax:tool_call>',
      content: "",
      calls: [call({ code: '\n<b>"1"</b>\n' }, "run")],
    },
    {
      what: "thoughts before a call",
      text: '<think>\nI ask.\n</think>\n\n<minimax:tool_call>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
      content: "<think>\nI ask.\n</think>",
      calls: [call({}, "now")],
    },
  ],
  gemma: [
    {
      what: "a call, and one with every kind of value",
      text: '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|><|tool_call>call:set{a:[1,-2.5,<|"|>x, {y}<|"|>],b:{c:true,<|"|>d e<|"|>:null},f:{},g:[]}<tool_call|>',
      content: "",
      calls: [call(), call({ a: [1, -2.5, "x, {y}"], b: { c: true, "d e": null }, f: {}, g: [] }, "set")],
    },
    {
      what: "a call of FunctionGemma after text",
      text: "Well.<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>",
      content: "Well.",
      calls: [call()],
    },
    {
      what: "a text whose marks were forgotten, and no arguments",
      text: "<|tool_call>call:get_weather{city: New York , days: 3}<tool_call|><|tool_call>call:now{}<tool_call|>",
      content: "",
      calls: [call({ city: "New York", days: 3 }), call({}, "now")],
    },
    {
      what: "a call that is only thought of",
      text: "<|channel>thought\n<|tool_call>call:now{}<tool_call|><channel|>No.",
      content: "<|channel>thought\n<|tool_call>call:now{}<tool_call|><channel|>No.",
      calls: [],
    },
  ],
  seed: [
    {
      what: "text and two calls, with values as Python prints them",
      text: "Well.\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n<parameter=days>3</parameter>\n<parameter=units>['C', \"F\"]</parameter>\n<parameter=isDetailed>True</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>",
      content: "Well.",
      calls: [call({ ...PARIS, units: ["C", "F"], isDetailed: true }), call({}, "now")],
    },
    {
      what: "a value that is none, and one that is neither JSON nor Python",
      text: "<seed:tool_call><function=get_weather><parameter=days>None</parameter><parameter=isDetailed>very</parameter></function></seed:tool_call>",
      content: "",
      calls: [call({ days: null, isDetailed: "very" })],
    },
    {
      what: "a call that is only thought of",
      text: "<seed:think>\n<seed:tool_call>?</seed:think>\nNo.",
      content: "<seed:think>\n<seed:tool_call>?</seed:think>\nNo.",
      calls: [],
    },
  ],
};

/** Texts that cannot be read as a call, and a part of the reason that is given. */
export const BROKEN: Readonly<Record<ToolCallFormatName, readonly [text: string, reason: RegExp][]>> = {
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
  deepseek_v4: [
    ["<｜DSML｜tool_calls>now()</｜DSML｜tool_calls>", /has no <｜DSML｜invoke/],
    [
      '<｜DSML｜tool_calls><｜DSML｜invoke name="now"></｜DSML｜tool_calls>',
      /not closed by <\/｜DSML｜invoke>/,
    ],
    [
      '<｜DSML｜tool_calls><｜DSML｜invoke name="now">{a}</｜DSML｜invoke></｜DSML｜tool_calls>',
      /no JSON object/,
    ],
    ["<｜DSML｜tool_calls>", /not closed/],
  ],
  kimi: [
    ["<|tool_call_begin|>functions.now:0<|tool_call_end|>", /has no <\|tool_call_argument_begin\|>/],
    ["<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>[]<|tool_call_end|>", /no JSON object/],
    ["<|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}<|tool_call_end|>", /no name/],
    ["<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}", /not closed/],
  ],
  minimax: [
    ["<minimax:tool_call>now()</minimax:tool_call>", /has no <invoke/],
    ['<minimax:tool_call><invoke name="now"></minimax:tool_call>', /not closed by <\/invoke>/],
    ['<minimax:tool_call><invoke name="now"></invoke>', /not closed/],
  ],
  gemma: [
    ["<|tool_call>now{}<tool_call|>", /"call:" is expected at character 1/],
    ['<|tool_call>call:now{a:<|"|>b}<tool_call|>', /a second <\|"\|> is expected/],
    ["<|tool_call>call:now{a:}<tool_call|>", /a value is expected/],
    ["<|tool_call>call:now{a:1} please<tool_call|>", /the end of the call/],
    [`<|tool_call>call:now{a:${"[".repeat(99)}}<tool_call|>`, /at most 64 levels/],
    ["<start_function_call>call:now{}", /not closed/],
  ],
  seed: [
    ["<seed:tool_call>now()</seed:tool_call>", /<function=NAME>/],
    ["<seed:tool_call><function=now>", /not closed/],
  ],
};
