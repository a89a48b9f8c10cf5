import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiRequestError } from "@hone/service-kit";
import type { ChatMessage } from "@hone/tokenizer";
import OpenAI from "openai";
import type { SessionFailure } from "../../domain/sessions/session-call.ts";
import { RESPONSES } from "./responses.ts";
import { fetchOf, HEAD, NO_HISTORY, REPLIES, replyingFetch } from "./testing.ts";

const asked = { model: "m", input: "Hi" };
const parse = (changes: object, context = NO_HISTORY as Parameters<typeof RESPONSES.parse>[1]) =>
  RESPONSES.parse(JSON.stringify({ ...asked, ...changes }), context).request;
const clientOf = (answer: typeof fetch) =>
  new OpenAI({ apiKey: "key", baseURL: "http://session/v1", maxRetries: 0, fetch: answer });

describe("the dialect of responses", () => {
  test("reads items as chat templates have them: calls belong to the answer before them", () => {
    const request = parse({
      instructions: "Be brief.",
      input: [
        { role: "developer", content: "Be kind." },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Look." }] },
        {
          type: "message",
          id: "msg_1",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "I will.", annotations: [] }],
        },
        { type: "function_call", id: "fc_1", call_id: "c1", name: "search", arguments: '{"q":"x"}' },
        { type: "function_call", call_id: "c2", name: "now", arguments: "" },
        { type: "function_call_output", call_id: "c1", output: "found" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "noon" }] },
        { type: "function_call", call_id: "c3", name: "now", arguments: "{}" },
      ],
      tools: [{ type: "function", name: "search", parameters: null, strict: true }],
      tool_choice: { type: "function", name: "search" },
      max_output_tokens: 7,
      top_p: 0.5,
    });
    const call = (id: string, name: string, input: object) => ({
      id,
      type: "function",
      function: { name, arguments: input },
    });
    assert.deepEqual(request.messages, [
      { role: "system", content: "Be brief." },
      { role: "system", content: "Be kind." },
      { role: "user", content: "Look." },
      {
        role: "assistant",
        content: "I will.",
        tool_calls: [call("c1", "search", { q: "x" }), call("c2", "now", {})],
      },
      { role: "tool", content: "found", tool_call_id: "c1" },
      { role: "tool", content: "noon", tool_call_id: "c2" },
      { role: "assistant", content: "", tool_calls: [call("c3", "now", {})] },
    ]);
    const parameters = { type: "object", properties: {} };
    assert.deepEqual(request.tools, [
      { type: "function", function: { name: "search", description: "", parameters } },
    ]);
    assert.deepEqual(request.toolChoice, { name: "search" });
    assert.deepEqual([request.maxNewTokens, request.sampling.topP], [7, 0.5]);
  });

  test("continues from an earlier answer, whose instructions its own ones replace", () => {
    const kept: ChatMessage[] = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello." },
    ];
    const context = { conversationUpTo: (id: string) => (id === HEAD.id ? kept : undefined) };
    const idOf = (changes: object) => {
      const { writer } = RESPONSES.parse(JSON.stringify({ ...asked, ...changes }), NO_HISTORY);
      return (writer(HEAD).whole(REPLIES.text!) as { id: string }).id;
    };
    const continueFrom = (previous_response_id: string, changes: object = {}) =>
      parse({ input: "More", previous_response_id, ...changes }, context).messages.map(
        ({ content }) => content,
      );
    const instructed = idOf({ instructions: "Be brief." });
    assert.deepEqual(continueFrom(instructed), ["Hi", "Hello.", "More"]);
    assert.deepEqual(continueFrom(instructed, { instructions: "Be kind." }), [
      "Be kind.",
      "Hi",
      "Hello.",
      "More",
    ]);
    // Here the first message is part of the input and not an instruction.
    assert.deepEqual(continueFrom(idOf({})), ["Be brief.", "Hi", "Hello.", "More"]);
    for (const unknown of ["resp_b2", "a1", "", "resp_", "resp_a1_i_i"]) {
      assert.throws(
        () => continueFrom(unknown),
        (error) =>
          error instanceof ApiRequestError &&
          error.param === "previous_response_id" &&
          error.apiCode === "previous_response_not_found",
        unknown,
      );
    }
  });

  test("accepts parameters without effect, and unknown ones", () => {
    for (const changes of [
      { store: false, metadata: { a: "b" }, truncation: "disabled", background: false },
      { text: { format: { type: "text" } }, top_logprobs: 0, conversation: null, prompt: null },
      { reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"], unheard_of: [1] },
    ]) {
      assert.deepEqual(parse(changes), parse({}));
    }
  });

  test("reads a format, and returns it with whether the answer has it", () => {
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const format = { type: "json_schema", name: "city", strict: true, schema };
    const { request, writer } = RESPONSES.parse(
      JSON.stringify({ ...asked, text: { format }, stream: true }),
      NO_HISTORY,
    );
    assert.deepEqual(request.responseFormat, { schema, description: "" });
    const checks = [{ demand: "response_format", problem: "the answer is no JSON" }] as const;
    const reply = { ...REPLIES.text!, checks };
    const whole = JSON.parse(JSON.stringify(writer(HEAD).whole(reply)));
    assert.deepEqual(whole.text.format, format);
    assert.deepEqual(whole.demands, {
      response_format: { is_met: false, problem: "the answer is no JSON" },
    });
    const last = writer(HEAD).events({ kind: "end", reply }).at(-1)?.data ?? "";
    assert.deepEqual(JSON.parse(last).response.demands, whole.demands);
    assert.equal(parse({ text: { format: { type: "json_object" } } }).responseFormat?.schema, undefined);
    assert.equal(parse({ text: { format: { type: "text" } } }).responseFormat, undefined);
  });

  const refusals: readonly [object, string][] = [
    [{ input: [] }, "input"],
    [{ input: [{ type: "reasoning", id: "r", summary: [] }] }, "input.0"],
    [{ input: [{ role: "user", content: [{ type: "input_image" }] }] }, "input.0.content"],
    [{ input: [{ type: "function_call", call_id: "c", name: "f", arguments: "[1]" }] }, "input.0.arguments"],
    [{ tools: [{ type: "web_search" }] }, "tools.0.type"],
    [{ text: { format: { type: "grammar" } } }, "text.format.type"],
    [{ text: { format: { type: "json_schema", name: "f" } } }, "text.format.schema"],
    [
      { text: { format: { type: "json_schema", name: "f", schema: { $ref: "#/$defs/none" } } } },
      "text.format.schema",
    ],
    [{ tool_choice: "required" }, "tool_choice"],
    [{ tool_choice: { type: "function", name: "f" } }, "tool_choice"],
    [{ background: true }, "background"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ prompt: { id: "p" } }, "prompt"],
    [{ truncation: "auto" }, "truncation"],
    [{ top_logprobs: 3 }, "top_logprobs"],
    [{ max_output_tokens: 0 }, "max_output_tokens"],
  ];
  for (const [changes, param] of refusals) {
    test(`refuses ${JSON.stringify(changes).slice(0, 60)} and names the parameter`, () => {
      assert.throws(
        () => parse(changes),
        (error) => error instanceof ApiRequestError && (error.param ?? "").startsWith(param),
      );
    });
  }

  for (const [name, reply] of Object.entries(REPLIES)) {
    test(`the official client reads the same answer whole and streamed: ${name}`, async () => {
      const client = clientOf(replyingFetch(RESPONSES, reply));
      const whole = await client.responses.create(asked);
      assert.equal(whole.output_text, reply.text);
      assert.deepEqual(
        whole.output.flatMap((item) =>
          item.type === "function_call" ? [[item.call_id, item.name, item.arguments]] : [],
        ),
        reply.calls.map((call) => [call.id, call.name, call.argumentsJson]),
      );
      assert.equal(whole.status, reply.finish === "length" ? "incomplete" : "completed");
      assert.equal(whole.usage?.total_tokens, 14);
      const numbers: number[] = [];
      const types: string[] = [];
      let told = "";
      for await (const event of await client.responses.create({ ...asked, stream: true })) {
        numbers.push(event.sequence_number);
        types.push(event.type);
        if (event.type === "response.output_text.delta") told += event.delta;
      }
      assert.deepEqual(numbers, [...numbers.keys()]);
      assert.equal(told, reply.text);
      assert.deepEqual(types.slice(0, 2), ["response.created", "response.in_progress"]);
      assert.equal(types.at(-1), `response.${whole.status}`);
      const streamed = await client.responses.stream(asked).finalResponse();
      const plain = ({ completed_at: _, ...rest }: object & { completed_at?: unknown }) =>
        JSON.parse(JSON.stringify(rest), (key, value) =>
          key.startsWith("parsed") || key === "output_parsed" ? undefined : value,
        );
      assert.deepEqual(plain(streamed), plain(whole));
    });
  }

  test("a failure in a stream becomes an error of the client's own class", async () => {
    const failure: SessionFailure = { status: 503, message: "later", param: undefined, code: "replica_gone" };
    const client = clientOf(
      fetchOf(RESPONSES, (writer) => [
        ...writer.events({ kind: "begin", inputTokens: 3 }),
        ...writer.failure(failure),
      ]),
    );
    const read = async () => {
      for await (const _ of await client.responses.create({ ...asked, stream: true }));
    };
    await assert.rejects(
      read(),
      (error) =>
        error instanceof OpenAI.APIError && error.code === "replica_gone" && /later/.test(error.message),
    );
  });
});
