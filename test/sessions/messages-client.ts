/** Tests of a session with the official Anthropic client. */

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { askUntil, collect } from "./ask-until.ts";
import type { SessionSuite } from "./session-suite.ts";

type Params = Anthropic.MessageCreateParamsNonStreaming;

const TOOLS: Anthropic.Tool[] = [
  {
    name: "look",
    description: "Looks at a place",
    input_schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
];

const textOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const callsOf = ({ content }: Anthropic.Message) => content.filter((block) => block.type === "tool_use");
/** All input tokens: cached ones are counted separately in the usage. */
const inputTokensOf = ({ usage }: Anthropic.Message) =>
  usage.input_tokens + (usage.cache_read_input_tokens ?? 0);

export const messagesClientSuite: SessionSuite = (name, sessions, record) => {
  const clientOf = ({ url, key } = sessions.first) =>
    new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  const asked = (options: Partial<Params> = {}): Params => ({
    model: "policy",
    max_tokens: 24,
    messages: [{ role: "user", content: "tell me about the lake" }],
    ...options,
  });
  const ask = (options: Partial<Params> = {}, client = clientOf()) => client.messages.create(asked(options));

  test(`${name}: answers a message, with usage`, async () => {
    const answer = await ask({ system: "be brief" });
    assert.deepEqual([answer.type, answer.role, answer.model], ["message", "assistant", "policy"]);
    assert.match(answer.id, /^msg_/);
    assert.ok(answer.usage.output_tokens > 0 && answer.usage.output_tokens <= 24);
    const longer = await ask({ system: "be very brief" });
    assert.equal(inputTokensOf(longer) - inputTokensOf(answer), "very ".length);
    assert.equal(answer.stop_reason, answer.usage.output_tokens === 24 ? "max_tokens" : "end_turn");
  });

  test(`${name}: streams events in order, and their text is the message's text`, async () => {
    const events = await collect(await clientOf().messages.create({ ...asked(), stream: true }));
    const types = events.map(({ type }) => type);
    assert.deepEqual(types.slice(0, 3), ["message_start", "content_block_start", "content_block_delta"]);
    assert.deepEqual(types.slice(-3), ["content_block_stop", "message_delta", "message_stop"]);
    assert.ok(types.length > 8, `${types.length} events`);
    let streamedText = "";
    const stream = clientOf().messages.stream(asked());
    stream.on("text", (delta) => {
      streamedText += delta;
    });
    const message = await stream.finalMessage();
    assert.equal(textOf(message), streamedText);
    assert.equal(message.stop_reason, message.usage.output_tokens === 24 ? "max_tokens" : "end_turn");
  });

  test(`${name}: an answer that the model ends has stop_reason end_turn`, async () => {
    const answer = await askUntil(
      "an end",
      () => ask({ max_tokens: 300 }),
      ({ stop_reason }) => stop_reason === "end_turn",
    );
    assert.equal(answer.stop_sequence, null);
  });

  test(`${name}: ends before a stop sequence, also in the stream`, async () => {
    const options = { stop_sequences: ["never seen", "ko"] };
    const isStopped = ({ stop_reason }: Anthropic.Message) => stop_reason === "stop_sequence";
    const whole = await askUntil("ko", () => ask(options), isStopped);
    const streamed = await askUntil(
      "ko",
      () => clientOf().messages.stream(asked(options)).finalMessage(),
      isStopped,
    );
    for (const answer of [whole, streamed]) {
      assert.equal(answer.stop_sequence, "ko");
      assert.ok(!textOf(answer).includes("ko"));
    }
  });

  for (const numCalls of [1, 2]) {
    const what = numCalls === 1 ? "calls a tool" : "calls tools in parallel";
    for (const isStreamed of [false, true]) {
      test(`${name}: ${what}${isStreamed ? ", streamed," : ""}, and continues from the tools' results`, async () => {
        const messages: Anthropic.MessageParam[] = [{ role: "user", content: `look at ${numCalls}` }];
        const call = (params: Params) =>
          isStreamed ? clientOf().messages.stream(params).finalMessage() : clientOf().messages.create(params);
        const called = await askUntil(
          `${numCalls} calls`,
          () => call(asked({ messages, tools: TOOLS })),
          (answer) => callsOf(answer).length === numCalls,
        );
        assert.equal(called.stop_reason, "tool_use");
        const calls = callsOf(called);
        assert.equal(new Set(calls.map(({ id }) => id)).size, numCalls);
        for (const { name: tool, input } of calls) {
          assert.equal(tool, "look");
          assert.match((input as { place: string }).place, /^p[0-9]+$/);
        }
        const results = calls.map(({ id }) => ({
          type: "tool_result" as const,
          tool_use_id: id,
          content: "wet",
        }));
        const next = await call(
          asked({
            messages: [
              ...messages,
              { role: "assistant", content: called.content },
              { role: "user", content: results },
            ],
            tools: TOOLS,
          }),
        );
        // <|tool|>wet for each, <|assistant|>, and the end of an answer that was cut off.
        const isCut = called.usage.output_tokens === 24;
        const added = inputTokensOf(next) - inputTokensOf(called) - called.usage.output_tokens;
        assert.ok(added === numCalls * 4 + 1 || (isCut && added === numCalls * 4 + 2), `${added} tokens`);
      });
    }
  }

  const refusals: readonly [string, object, RegExp][] = [
    ["no messages", { messages: [] }, /messages/],
    ["no number of tokens", { max_tokens: undefined }, /max_tokens/],
    ["thinking", { thinking: { type: "enabled", budget_tokens: 1_024 } }, /thinking/],
    ["an image", { messages: [{ role: "user", content: [{ type: "image" }] }] }, /content/],
    [
      "a prompt beyond the context",
      { messages: [{ role: "user", content: "lake ".repeat(1_200) }] },
      /context/,
    ],
  ];
  for (const [what, options, message] of refusals) {
    test(`${name}: refuses ${what}, streamed or not`, async () => {
      const streamed = (changes: object) => clientOf().messages.stream(asked(changes)).finalMessage();
      for (const each of [ask, streamed]) {
        await assert.rejects(each(options), (error) => {
          assert.ok(error instanceof Anthropic.BadRequestError, String(error));
          assert.equal(error.type, "invalid_request_error");
          return message.test(error.message);
        });
      }
    });
  }

  test(`${name}: only its own key opens a session, as bearer token or x-api-key`, async () => {
    const { first, second } = sessions;
    await assert.rejects(
      ask({}, clientOf({ url: first.url, key: second.key })),
      (error) => error instanceof Anthropic.AuthenticationError && error.type === "authentication_error",
    );
    const post = (headers: Record<string, string>) =>
      fetch(`${first.url}/v1/messages`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify(asked()),
      });
    const statuses = await Promise.all(
      [
        { "x-api-key": first.key },
        { authorization: `Bearer ${first.key}` },
        { "x-api-key": second.key },
        {},
      ].map(async (headers) => (await post(headers as Record<string, string>)).status),
    );
    assert.deepEqual(statuses, [200, 200, 401, 401]);
  });

  test(`${name}: a client that disconnects ends its generation`, async () => {
    await record.abandon(async () => {
      const stream = await clientOf().messages.create({ ...asked({ max_tokens: 1_500 }), stream: true });
      for await (const { type } of stream) if (type === "content_block_delta") break;
    });
    await record.abandon(async () => {
      const controller = new AbortController();
      let waiting: Promise<unknown> = Promise.resolve();
      await record.untilItRuns(() => {
        waiting = clientOf().messages.create(asked({ max_tokens: 1_500 }), { signal: controller.signal });
        return waiting;
      });
      controller.abort();
      await waiting.catch((error) => assert.ok(error instanceof Anthropic.APIUserAbortError, String(error)));
    });
  });
};
