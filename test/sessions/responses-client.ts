/** Tests of a session with the official OpenAI client: responses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { askUntil } from "./ask-until.ts";
import type { SessionSuite } from "./session-suite.ts";

type Params = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream">;

const TOOLS: OpenAI.Responses.FunctionTool[] = [
  {
    type: "function",
    name: "look",
    description: "Looks at a place",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
    strict: null,
  },
];

const callsOf = ({ output }: OpenAI.Responses.Response) =>
  output.filter((item) => item.type === "function_call");

export const responsesClientSuite: SessionSuite = (name, sessions, record) => {
  const clientOf = ({ url, key } = sessions.first) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const asked = (options: Partial<Params> = {}): Params => ({
    model: "policy",
    input: "tell me about the lake",
    max_output_tokens: 24,
    ...options,
  });
  const ask = (options: Partial<Params> = {}, client = clientOf()) => client.responses.create(asked(options));

  test(`${name}: answers, with usage`, async () => {
    const answer = await ask({ instructions: "be brief", metadata: { a: "b" } });
    assert.deepEqual([answer.object, answer.model, answer.metadata], ["response", "policy", { a: "b" }]);
    const { usage } = answer;
    assert.equal(usage?.total_tokens, (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0));
    const isCut = usage?.output_tokens === 24;
    assert.equal(answer.status, isCut ? "incomplete" : "completed");
    assert.deepEqual(answer.incomplete_details, isCut ? { reason: "max_output_tokens" } : null);
  });

  test(`${name}: streams events in order, and their text is the answer's text`, async () => {
    let streamedText = "";
    const types: string[] = [];
    const stream = clientOf().responses.stream(asked());
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") streamedText += event.delta;
    }
    const answer = await stream.finalResponse();
    assert.equal(answer.output_text, streamedText);
    assert.deepEqual(types.slice(0, 2), ["response.created", "response.in_progress"]);
    assert.equal(types.at(-1), `response.${answer.status}`);
    assert.ok(types.length > 8, `${types.length} events`);
  });

  for (const numCalls of [1, 2]) {
    const what = numCalls === 1 ? "calls a tool" : "calls tools in parallel";
    for (const isStreamed of [false, true]) {
      test(`${name}: ${what}${isStreamed ? ", streamed," : ""}, and continues from the tools' results`, async () => {
        const input: OpenAI.Responses.ResponseInputItem[] = [
          { role: "user", content: `look at ${numCalls}` },
        ];
        const call = (params: Params) =>
          isStreamed
            ? clientOf().responses.stream(params).finalResponse()
            : clientOf().responses.create(params);
        const called = await askUntil(
          `${numCalls} calls`,
          () => call(asked({ input, tools: TOOLS })),
          (answer) => callsOf(answer).length === numCalls,
        );
        const calls = callsOf(called);
        for (const { name: tool, arguments: json } of calls) {
          assert.equal(tool, "look");
          assert.match(JSON.parse(json).place, /^p[0-9]+$/);
        }
        const results = calls.map(({ call_id }) => ({
          type: "function_call_output" as const,
          call_id,
          output: "wet",
        }));
        const said = called.output as OpenAI.Responses.ResponseInputItem[];
        // Repeating the answer's items and naming the answer by its id must give the same context.
        const all = await call(asked({ input: [...input, ...said, ...results], tools: TOOLS }));
        const named = await call(asked({ input: results, previous_response_id: called.id, tools: TOOLS }));
        const { input_tokens = 0, output_tokens = 0 } = called.usage ?? {};
        const added = (all.usage?.input_tokens ?? 0) - input_tokens - output_tokens;
        // <|tool|>wet for each, <|assistant|>, and the end of an answer that was cut off.
        const isCut = output_tokens === 24;
        assert.ok(added === numCalls * 4 + 1 || (isCut && added === numCalls * 4 + 2), `${added} tokens`);
        assert.equal(named.usage?.input_tokens, all.usage?.input_tokens);
      });
    }
  }

  test(`${name}: continues from an earlier answer without its instructions`, async () => {
    const first = await ask({ instructions: "be brief" });
    const next = await ask({ input: "and then", previous_response_id: first.id, instructions: "be brief" });
    const without = await ask({ input: "and then", previous_response_id: first.id });
    assert.equal(next.previous_response_id, first.id);
    const { input_tokens = 0, output_tokens = 0 } = first.usage ?? {};
    assert.ok((next.usage?.input_tokens ?? 0) >= input_tokens + output_tokens);
    // Without the instructions the first answer is plain text, which lacks the template's control tokens.
    const instructed = (next.usage?.input_tokens ?? 0) - (without.usage?.input_tokens ?? 0);
    assert.ok(instructed >= 1 + "be brief".length, `${instructed} tokens`);
    for (const previous_response_id of ["resp_unknown", "unknown"]) {
      await assert.rejects(
        ask({ previous_response_id }),
        (error) => error instanceof OpenAI.BadRequestError && error.code === "previous_response_not_found",
      );
    }
    const otherSession = clientOf(sessions.second);
    await assert.rejects(ask({ previous_response_id: first.id }, otherSession), OpenAI.BadRequestError);
  });

  const refusals: readonly [string, object, string | null][] = [
    ["no input", { input: [] }, "input"],
    ["a tool of the provider", { tools: [{ type: "web_search" }] }, "tools.0.type"],
    [
      "a schema that refers to nothing",
      { text: { format: { type: "json_schema", name: "a", schema: { $ref: "#/b" } } } },
      "text.format.schema",
    ],
    ["a prompt beyond the context", { input: "lake ".repeat(1_200) }, "messages"],
  ];
  for (const [what, options, param] of refusals) {
    test(`${name}: refuses ${what}, streamed or not`, async () => {
      const streamed = (changes: object) => clientOf().responses.stream(asked(changes)).finalResponse();
      for (const each of [ask, streamed]) {
        await assert.rejects(each(options), (error) => {
          assert.ok(error instanceof OpenAI.BadRequestError, String(error));
          assert.equal(error.param, param);
          return true;
        });
      }
    });
  }

  test(`${name}: a client that disconnects ends its generation`, async () => {
    await record.abandon(async () => {
      const stream = await clientOf().responses.create({
        ...asked({ max_output_tokens: 1_500 }),
        stream: true,
      });
      for await (const { type } of stream) if (type === "response.output_text.delta") break;
    });
  });
};
