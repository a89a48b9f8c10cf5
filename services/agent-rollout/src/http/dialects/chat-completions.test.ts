import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiRequestError } from "@hone/service-kit";
import type { ReplyEvent, SessionReply } from "../../domain/sessions/session-call.ts";
import { CHAT_COMPLETIONS } from "./chat-completions.ts";

const context = { conversationUpTo: () => undefined };
const head = { id: "1", created: 1_756_000_000 };
const parse = (body: object) => CHAT_COMPLETIONS.parse(JSON.stringify(body), context);
const asked = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const tools = [{ type: "function", function: { name: "search" } }];
const schemaOf = (schema: object) => ({
  ...asked,
  response_format: { type: "json_schema", json_schema: { name: "city", strict: true, schema } },
});
const reply: SessionReply = {
  text: "",
  calls: [{ id: "c00000000", name: "search", argumentsJson: '{"q":"x"}' }],
  finish: "tool_calls",
  stopText: undefined,
  checks: [],
  usage: { inputTokens: 3, cachedTokens: 1, outputTokens: 5 },
  tokens: { promptIds: [1, 2, 3], tokenIds: [4, 5, 6, 7, 8], logprobs: [] },
};

describe("the dialect of chat completions", () => {
  test("reads messages, calls and tools into the form that chat templates take", () => {
    const call = { id: "c1", type: "function", function: { name: "search", arguments: '{"q":"x"}' } };
    const { request } = parse({
      model: "m",
      messages: [
        {
          role: "developer",
          content: [
            { type: "text", text: "Be " },
            { type: "text", text: "brief." },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", content: "found", tool_call_id: "c1" },
      ],
      tools: [{ type: "function", function: { name: "search" } }],
      stop: "\n\n",
      max_tokens: 9,
      seed: null,
      temperature: 0.5,
    });
    assert.deepEqual(request.messages, [
      { role: "system", content: "Be brief." },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ ...call, function: { name: "search", arguments: { q: "x" } } }],
      },
      { role: "tool", content: "found", tool_call_id: "c1" },
    ]);
    assert.deepEqual(request.tools[0]?.function.parameters, { type: "object", properties: {} });
    assert.deepEqual(request.stopTexts, ["\n\n"]);
    assert.equal(request.maxNewTokens, 9);
    assert.equal(request.seed, undefined);
    assert.equal(request.sampling.temperature, 0.5);
  });

  test("names the wrong parameter", () => {
    const broken: readonly [object, string][] = [
      [{ ...asked, n: 0 }, "n"],
      [{ ...asked, n: 65 }, "n"],
      [{ ...asked, n: 1.5 }, "n"],
      [{ ...asked, messages: [] }, "messages"],
      [
        { ...asked, messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
        "messages.0",
      ],
      [{ ...asked, response_format: { type: "grammar" } }, "response_format.type"],
      [{ ...asked, response_format: { type: "json_schema" } }, "response_format.json_schema"],
      [schemaOf({ $ref: "#/$defs/none" }), "response_format.json_schema.schema"],
      [schemaOf({ enum: ["x".repeat(70_000)] }), "response_format.json_schema.schema"],
      [{ ...asked, tool_choice: "required" }, "tool_choice"],
      [{ ...asked, tools, tool_choice: { type: "function", function: { name: "find" } } }, "tool_choice"],
      [{ ...asked, tools, tool_choice: "sometimes" }, "tool_choice"],
      [
        {
          ...asked,
          messages: [
            { role: "assistant", tool_calls: [{ id: "1", function: { name: "f", arguments: "[1]" } }] },
          ],
        },
        "messages.0.tool_calls.0.function.arguments",
      ],
    ];
    for (const [body, param] of broken) {
      assert.throws(
        () => parse(body),
        (error) => error instanceof ApiRequestError && (error.param ?? "").startsWith(param),
        JSON.stringify(body),
      );
    }
  });

  test("reads how many answers it wants, the format that they shall have and the call that they shall make", () => {
    const schema = { type: "object", properties: { city: { type: "string" } } };
    const { request } = parse({
      ...schemaOf(schema),
      n: 3,
      tools,
      tool_choice: { type: "function", function: { name: "search" } },
    });
    assert.equal(request.numAnswers, 3);
    assert.deepEqual(request.responseFormat, { schema, description: "" });
    assert.deepEqual(request.toolChoice, { name: "search" });
    const json = parse({ ...asked, response_format: { type: "json_object" } }).request;
    assert.deepEqual(json.responseFormat, { schema: undefined, description: "" });
    const plain = parse({ ...asked, response_format: { type: "text" } }).request;
    assert.deepEqual([plain.responseFormat, plain.numAnswers], [undefined, 1]);
  });

  test("writes several answers, whole and streamed, with their usage once and what of their demands they met", () => {
    const checks = [{ demand: "tool_choice", problem: "the answer calls no tool" }] as const;
    const other: SessionReply = { ...reply, text: "No.", calls: [], finish: "stop", checks };
    const body = JSON.parse(
      JSON.stringify(
        parse({ ...asked, n: 2 })
          .writer(head)
          .whole(reply, other),
      ),
    );
    assert.deepEqual(
      body.choices.map(({ index, finish_reason }: { index: number; finish_reason: string }) => [
        index,
        finish_reason,
      ]),
      [
        [0, "tool_calls"],
        [1, "stop"],
      ],
    );
    const demands = { tool_choice: { is_met: false, problem: "the answer calls no tool" } };
    assert.deepEqual([body.choices[0].demands, body.choices[1].demands], [undefined, demands]);
    assert.deepEqual(
      [body.usage.prompt_tokens, body.usage.completion_tokens, body.usage.total_tokens],
      [3, 10, 13],
    );
    const writer = parse({ ...asked, n: 2, stream: true, stream_options: { include_usage: true } }).writer(
      head,
    );
    const sent = [
      ...writer.events({ kind: "begin", inputTokens: 3 }, 1),
      ...writer.events({ kind: "begin", inputTokens: 3 }, 0),
      ...writer.events({ kind: "text", text: "No." }, 1),
      ...writer.events({ kind: "end", reply: other }, 1),
      ...writer.events({ kind: "end", reply }, 0),
    ].map(({ data }) => data);
    assert.deepEqual(sent.indexOf("[DONE]"), sent.length - 1);
    const chunks = sent.slice(0, -1).map((data) => JSON.parse(data));
    assert.deepEqual(
      chunks.map(({ choices }) => choices[0]?.index),
      [1, 0, 1, 1, 0, undefined],
    );
    assert.deepEqual(chunks[3].choices[0].demands, demands);
    assert.equal(chunks.at(-1).usage.completion_tokens, 10);
  });

  test("writes a whole answer with its calls", () => {
    const body = JSON.parse(JSON.stringify(parse(asked).writer(head).whole(reply)));
    assert.equal(body.id, "chatcmpl-1");
    assert.equal(body.choices[0].finish_reason, "tool_calls");
    assert.equal(body.choices[0].message.content, null);
    assert.equal(body.choices[0].message.tool_calls[0].function.arguments, '{"q":"x"}');
    assert.equal(body.usage.total_tokens, 8);
    assert.equal("token_ids" in body.choices[0], false);
  });

  test("streams the same answer, with usage and token ids if the request asks for them", () => {
    const writer = parse({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
    }).writer(head);
    const events: ReplyEvent[] = [
      { kind: "begin", inputTokens: 3 },
      { kind: "text", text: "I " },
      { kind: "call_begin", index: 0, id: "c00000000", name: "search" },
      { kind: "call_arguments", index: 0, json: '{"q":"x"}' },
      { kind: "call_end", index: 0 },
      { kind: "end", reply },
    ];
    const sent = events.flatMap((event) => writer.events(event)).map(({ data }) => data);
    assert.equal(sent.at(-1), "[DONE]");
    const chunks = sent.slice(0, -1).map((data) => JSON.parse(data));
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }: { delta: object }) => delta));
    assert.deepEqual(deltas, [
      { role: "assistant", content: "" },
      { content: "I " },
      {
        tool_calls: [
          { index: 0, id: "c00000000", type: "function", function: { name: "search", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"q":"x"}' } }] },
      {},
    ]);
    assert.deepEqual(chunks.at(-2).choices[0].token_ids, [4, 5, 6, 7, 8]);
    assert.equal(chunks.at(-1).usage.completion_tokens, 5);
    assert.equal(chunks[0].usage, null);
  });
});
