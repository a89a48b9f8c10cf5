import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { ApiRequestError } from "@hone/service-kit";
import type { SessionFailure } from "../../domain/sessions/session-call.ts";
import { MESSAGES } from "./messages.ts";
import { fetchOf, HEAD, NO_HISTORY, REPLIES, replyingFetch } from "./testing.ts";

const asked = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };
const parse = (changes: object) =>
  MESSAGES.parse(JSON.stringify({ ...asked, ...changes }), NO_HISTORY).request;
const clientOf = (answer: typeof fetch) =>
  new Anthropic({ apiKey: "key", baseURL: "http://session", maxRetries: 0, fetch: answer });
const ask = { ...asked, messages: [{ role: "user" as const, content: "Hi" }] };

describe("the dialect of messages", () => {
  test("reads blocks into the form that chat templates take, with results of tools as messages of their own", () => {
    const request = parse({
      system: [
        { type: "text", text: "Be ", cache_control: { type: "ephemeral" } },
        { type: "text", text: "brief." },
      ],
      messages: [
        { role: "user", content: "Look." },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I will. " },
            { type: "tool_use", id: "c1", name: "search", input: { q: "x" } },
            { type: "tool_use", id: "c2", name: "now", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "found" }] },
            { type: "tool_result", tool_use_id: "c2", is_error: true },
            { type: "text", text: "Go " },
            { type: "text", text: "on." },
          ],
        },
      ],
      tools: [{ name: "search", description: "Finds", input_schema: { type: "object" } }],
      tool_choice: { type: "tool", name: "search", disable_parallel_tool_use: true },
      stop_sequences: ["\n\n"],
      temperature: 0.5,
      top_k: 3,
    });
    const call = (id: string, name: string, input: object) => ({
      id,
      type: "function",
      function: { name, arguments: input },
    });
    assert.deepEqual(request.messages, [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Look." },
      {
        role: "assistant",
        content: "I will. ",
        tool_calls: [call("c1", "search", { q: "x" }), call("c2", "now", {})],
      },
      { role: "tool", content: "found", tool_call_id: "c1" },
      { role: "tool", content: "", tool_call_id: "c2" },
      { role: "user", content: "Go on." },
    ]);
    assert.deepEqual(request.tools, [
      {
        type: "function",
        function: { name: "search", description: "Finds", parameters: { type: "object" } },
      },
    ]);
    assert.deepEqual(request.toolChoice, { name: "search" });
    assert.deepEqual(request.stopTexts, ["\n\n"]);
    assert.deepEqual(request.sampling, { temperature: 0.5, topP: undefined, topK: 3 });
    assert.deepEqual([request.maxNewTokens, request.isStreamed], [9, false]);
    for (const [given, meant] of [
      ["any", "required"],
      ["none", "none"],
      ["auto", "auto"],
    ]) {
      const tools = [{ name: "search", input_schema: { type: "object" } }];
      assert.equal(parse({ tools, tool_choice: { type: given } }).toolChoice, meant);
    }
  });

  test("accepts parameters without effect, and unknown ones", () => {
    for (const changes of [
      { thinking: { type: "disabled" } },
      { thinking: { type: "adaptive" }, output_config: { effort: "low" } },
      { metadata: { user_id: "x" }, service_tier: "auto", unheard_of: [1] },
      { mcp_servers: [], container: null, system: null },
    ]) {
      assert.deepEqual(parse(changes), parse({}));
    }
  });

  test("reads a format, and tells whether the answer has it", () => {
    const format = { type: "json_schema", schema: { type: "object" } };
    for (const changes of [{ output_config: { format } }, { output_format: format }]) {
      assert.deepEqual(parse(changes).responseFormat, { schema: format.schema, description: "" });
    }
    const { writer } = MESSAGES.parse(JSON.stringify({ ...asked, output_config: { format } }), NO_HISTORY);
    const checks = [{ demand: "response_format", problem: undefined }] as const;
    const reply = { ...REPLIES.text!, checks };
    const demands = { response_format: { is_met: true } };
    const { demands: told } = writer(HEAD).whole(reply) as { demands: object };
    assert.deepEqual(told, demands);
    const events = writer(HEAD).events({ kind: "end", reply });
    assert.deepEqual(JSON.parse(events.at(-2)?.data ?? "").demands, demands);
  });

  const refusals: readonly [object, string][] = [
    [{ max_tokens: undefined }, "max_tokens"],
    [{ messages: [] }, "messages"],
    [{ messages: [...asked.messages, { role: "assistant", content: "I" }] }, "messages"],
    [{ messages: [{ role: "user", content: [{ type: "image", source: {} }] }] }, "messages.0.content"],
    [
      { messages: [{ role: "user", content: [{ type: "tool_use", id: "1", name: "f", input: {} }] }] },
      "messages.0.content",
    ],
    [
      { messages: [{ role: "assistant", content: [{ type: "thinking", thinking: "", signature: "" }] }] },
      "messages.0.content",
    ],
    [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, "thinking.type"],
    [{ tools: [{ type: "web_search_20260318", name: "web_search" }] }, "tools.0.type"],
    [{ tools: [{ name: "f" }] }, "tools.0.input_schema"],
    [{ output_config: { format: { type: "text" } } }, "output_config.format.type"],
    [
      { output_config: { format: { type: "json_schema", schema: { $ref: "#/$defs/none" } } } },
      "output_config.format.schema",
    ],
    [{ tool_choice: { type: "any" } }, "tool_choice"],
    [{ tool_choice: { type: "tool", name: "f" } }, "tool_choice"],
    [{ mcp_servers: [{ type: "url" }] }, "mcp_servers"],
    [{ container: "c" }, "container"],
    [{ temperature: 1.5 }, "temperature"],
    [{ stop_sequences: [""] }, "stop_sequences.0"],
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
      const client = clientOf(replyingFetch(MESSAGES, reply));
      const whole = await client.messages.create(ask);
      assert.deepEqual(
        whole.content.map((block) =>
          block.type === "text"
            ? block.text
            : block.type === "tool_use"
              ? [block.id, block.name]
              : block.type,
        ),
        [...(reply.text === "" ? [] : [reply.text]), ...reply.calls.map((call) => [call.id, call.name])],
      );
      for (const block of whole.content) {
        if (block.type !== "tool_use") continue;
        const call = reply.calls.find(({ id }) => id === block.id);
        assert.deepEqual(block.input, JSON.parse(call!.argumentsJson));
      }
      assert.deepEqual(whole.usage.input_tokens + whole.usage.cache_read_input_tokens!, 9);
      assert.equal(whole.usage.output_tokens, 5);
      const streamed = await client.messages.stream(ask).finalMessage();
      assert.deepEqual({ ...streamed }, { ...whole, parsed_output: null });
    });
  }

  test("gives the reason why an answer ended", async () => {
    const reasons = await Promise.all(
      Object.values(REPLIES).map(async (reply) => {
        const { stop_reason, stop_sequence } = await clientOf(replyingFetch(MESSAGES, reply)).messages.create(
          ask,
        );
        return [stop_reason, stop_sequence];
      }),
    );
    assert.deepEqual(reasons, [
      ["end_turn", null],
      ["end_turn", null],
      ["max_tokens", null],
      ["stop_sequence", "lake"],
      ["tool_use", null],
      ["tool_use", null],
    ]);
  });

  test("failures in a stream and by status become errors of the client's own classes", async () => {
    const failure: SessionFailure = { status: 503, message: "later", param: undefined, code: undefined };
    const client = clientOf(
      fetchOf(MESSAGES, (writer) => [
        ...writer.events({ kind: "begin", inputTokens: 3 }),
        ...writer.failure(failure),
      ]),
    );
    await assert.rejects(client.messages.stream(ask).finalMessage(), (error) => {
      assert.ok(error instanceof Anthropic.APIError);
      assert.equal(error.type, "overloaded_error");
      return /later/.test(error.message);
    });
    const refused = clientOf(async () =>
      Response.json(MESSAGES.failureBody({ ...failure, status: 404 }), { status: 404 }),
    );
    await assert.rejects(
      refused.messages.create(ask),
      (error) => error instanceof Anthropic.NotFoundError && error.type === "not_found_error",
    );
  });
});
