/** Tests of a session with the official OpenAI client: chat completions. */

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { askUntil, collect } from "./ask-until.ts";
import type { SessionSuite } from "./session-suite.ts";

type Params = OpenAI.ChatCompletionCreateParamsNonStreaming;
type Message = OpenAI.ChatCompletionMessageParam;

const user = (content: string): Message => ({ role: "user", content });
const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "look",
      description: "Looks at a place",
      parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
    },
  },
];

/** The token ids of a completion that was asked for with `return_token_ids`. */
interface WithTokens {
  readonly prompt_token_ids: number[];
  readonly choices: readonly { readonly token_ids: number[] }[];
}

export const chatClientSuite: SessionSuite = (name, sessions, record) => {
  const clientOf = ({ url, key } = sessions.first) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const ask = async (options: Partial<Params> = {}, client = clientOf()) => {
    const answer = await client.chat.completions.create({
      model: "policy",
      messages: [user("tell me about the lake")],
      max_tokens: 24,
      ...options,
      ...({ return_token_ids: true } as object),
    });
    const { prompt_token_ids: promptIds, choices } = answer as unknown as WithTokens;
    record.answered(promptIds, choices[0]!.token_ids);
    return { answer, choice: answer.choices[0]!, promptIds, tokenIds: choices[0]!.token_ids };
  };
  const chunksOf = async (options: Partial<OpenAI.ChatCompletionCreateParamsStreaming> = {}) =>
    collect(
      await clientOf().chat.completions.create({
        model: "policy",
        messages: [user("tell me about the lake")],
        max_tokens: 24,
        ...options,
        stream: true,
      }),
    );
  const textOf = (chunks: readonly OpenAI.ChatCompletionChunk[]) =>
    chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");

  test(`${name}: completes a chat, with usage`, async () => {
    const { answer, choice, promptIds, tokenIds } = await ask();
    assert.equal(choice.message.role, "assistant");
    assert.deepEqual(
      [answer.usage?.prompt_tokens, answer.usage?.completion_tokens, answer.usage?.total_tokens],
      [promptIds.length, tokenIds.length, promptIds.length + tokenIds.length],
    );
    assert.equal(choice.finish_reason, tokenIds.length === 24 ? "length" : "stop");
  });

  test(`${name}: the same seed gives the same answer, and another seed or none gives another`, async () => {
    const first = await ask({ seed: 1 });
    assert.deepEqual((await ask({ seed: 1 })).tokenIds, first.tokenIds);
    assert.notDeepEqual((await ask({ seed: 2 })).tokenIds, first.tokenIds);
    assert.notDeepEqual((await ask()).tokenIds, (await ask()).tokenIds);
  });

  test(`${name}: streams the same text, with usage in the last chunk`, async () => {
    const { choice, answer } = await ask({ seed: 3 });
    const chunks = await chunksOf({ seed: 3, stream_options: { include_usage: true } });
    assert.equal(textOf(chunks), choice.message.content);
    assert.deepEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" });
    assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, choice.finish_reason);
    const { completion_tokens, prompt_tokens } = chunks.at(-1)?.usage ?? {};
    assert.deepEqual(
      [prompt_tokens, completion_tokens],
      [answer.usage?.prompt_tokens, answer.usage?.completion_tokens],
    );
    assert.ok(chunks.length > 5, `${chunks.length} chunks`);
  });

  test(`${name}: an answer that the model ends has finish_reason stop`, async () => {
    const { tokenIds } = await askUntil(
      "an end",
      (seed) => ask({ seed, max_tokens: 300 }),
      ({ choice }) => choice.finish_reason === "stop",
    );
    assert.ok(tokenIds.length <= 300);
  });

  test(`${name}: ends before a stop text, also in the stream`, async () => {
    const { choice, tokenIds } = await ask({ seed: 5 });
    const text = choice.message.content!;
    const stop = text.slice(20, 24);
    const stopped = await ask({ seed: 5, stop });
    assert.equal(stopped.choice.message.content, text.slice(0, text.indexOf(stop)));
    assert.equal(stopped.choice.finish_reason, "stop");
    assert.ok(stopped.tokenIds.length < tokenIds.length);
    assert.deepEqual(stopped.tokenIds, tokenIds.slice(0, stopped.tokenIds.length));
    const chunks = await chunksOf({ seed: 5, stop: ["never seen", stop] });
    assert.equal(textOf(chunks), stopped.choice.message.content);
  });

  for (const numCalls of [1, 2]) {
    test(`${name}: ${numCalls === 1 ? "calls a tool" : "calls tools in parallel"}, streams the same calls, and continues from the tools' results`, async () => {
      const messages = [user(`look at ${numCalls}`)];
      const called = await askUntil(
        `${numCalls} calls`,
        async (seed) => ({ ...(await ask({ seed, messages, tools: TOOLS })), seed }),
        ({ choice }) => (choice.message.tool_calls?.length ?? 0) === numCalls,
      );
      const { message, finish_reason } = called.choice;
      const calls = message.tool_calls!.filter((call) => call.type === "function");
      assert.equal(finish_reason, "tool_calls");
      assert.equal(new Set(calls.map(({ id }) => id)).size, numCalls);
      for (const call of calls) {
        assert.equal(call.function.name, "look");
        assert.match(JSON.parse(call.function.arguments).place, /^p[0-9]+$/);
      }
      const streamed = await clientOf()
        .chat.completions.stream({
          model: "policy",
          messages,
          tools: TOOLS,
          seed: called.seed,
          max_tokens: 24,
        })
        .finalChatCompletion();
      const withoutIds = (given: readonly OpenAI.ChatCompletionMessageToolCall[] = []) =>
        given.map((call) => call.type === "function" && [call.function.name, call.function.arguments]);
      assert.deepEqual(withoutIds(streamed.choices[0]?.message.tool_calls), withoutIds(calls));
      assert.equal((streamed.choices[0]?.message.content ?? "").trim(), message.content ?? "");
      const next = await ask({
        messages: [
          ...messages,
          message,
          ...calls.map(({ id }): Message => ({ role: "tool", tool_call_id: id, content: "wet" })),
        ],
        tools: TOOLS,
      });
      const before = [...called.promptIds, ...called.tokenIds];
      assert.deepEqual(
        next.promptIds.slice(0, before.length),
        before,
        "the next prompt begins with the recorded tokens",
      );
    });
  }

  test(`${name}: each turn's prompt begins with the tokens of the turns before`, async () => {
    const messages = [user("a lake")];
    let before: number[] = [];
    for (const question of ["where", "how far", "is it wet"]) {
      const { choice, promptIds, tokenIds } = await ask({ messages });
      assert.deepEqual(promptIds.slice(0, before.length), before);
      before = [...promptIds, ...tokenIds];
      messages.push({ role: "assistant", content: choice.message.content }, user(question));
    }
  });

  test(`${name}: calls no tool if tool_choice is none`, async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((seed) => ask({ seed, tools: TOOLS, tool_choice: "none" })),
    );
    for (const { choice } of answers) assert.equal(choice.message.tool_calls, undefined);
  });

  test(`${name}: gives several answers to one context, whole and streamed, and the agent goes on from any`, async () => {
    const messages = [user("which lake")];
    const create = { model: "policy", messages, max_tokens: 12, n: 3, seed: 4 } as const;
    const answer = await clientOf().chat.completions.create({
      ...create,
      ...({ return_token_ids: true } as object),
    });
    const { prompt_token_ids: promptIds, choices } = answer as unknown as WithTokens;
    for (const { token_ids } of choices) record.answered(promptIds, token_ids);
    const texts = answer.choices.map(({ message }) => message.content);
    assert.equal(new Set(texts).size, 3);
    assert.equal(
      answer.usage?.completion_tokens,
      choices.reduce((sum, each) => sum + each.token_ids.length, 0),
    );
    const streamed = await clientOf().chat.completions.stream(create).finalChatCompletion();
    assert.deepEqual(
      streamed.choices.map(({ message }) => message.content),
      texts,
    );
    for (const index of [0, 2]) {
      const next = await ask({
        messages: [...messages, { role: "assistant", content: texts[index]! }, user("why")],
      });
      const before = [...promptIds, ...choices[index]!.token_ids];
      assert.deepEqual(next.promptIds.slice(0, before.length), before);
    }
  });

  test(`${name}: tells the model what is demanded, says whether it was met, and goes on from there`, async () => {
    const schema = { type: "object", properties: { place: { type: "string" } } };
    const messages = [user("where")];
    const plain = await ask({ messages });
    const { choice, promptIds, tokenIds } = await ask({
      messages,
      response_format: { type: "json_schema", json_schema: { name: "place", schema } },
    });
    assert.ok(promptIds.length > plain.promptIds.length);
    assert.equal(choice.message.content === null, false);
    const { demands } = choice as unknown as { demands: Record<string, { is_met: boolean }> };
    assert.equal(demands.response_format?.is_met, false);
    const next = await ask({ messages: [...messages, choice.message, user("why")] });
    const before = [...promptIds, ...tokenIds];
    assert.deepEqual(next.promptIds.slice(0, before.length), before);
    const called = await askUntil(
      "a call that was demanded",
      (seed) => ask({ seed, messages, tools: TOOLS, tool_choice: "required" }),
      (each) => (each.choice.message.tool_calls?.length ?? 0) > 0,
    );
    const told = called.choice as unknown as { demands: Record<string, { is_met: boolean }> };
    assert.deepEqual(told.demands, { tool_choice: { is_met: true } });
  });

  const refusals: readonly [what: string, options: Partial<Params>, param: string, message: RegExp][] = [
    ["no messages", { messages: [] }, "messages", /messages is not accepted: .*>=1 items/],
    ["more answers than calls at once", { n: 65 }, "n", /n is not accepted: .*<=64/],
    [
      "a schema that refers to nothing",
      { response_format: { type: "json_schema", json_schema: { name: "a", schema: { $ref: "#/b" } } } },
      "response_format.json_schema.schema",
      /is not a schema that answers can be checked by: /,
    ],
    [
      "a call of a tool that is not there",
      { tools: TOOLS, tool_choice: { type: "function", function: { name: "jump" } } },
      "tool_choice",
      /tool_choice demands a call of jump, .*\(look\)/,
    ],
    ["an empty stop text", { stop: "" }, "stop", /stop is not accepted: .*>=1 characters/],
    [
      "a prompt beyond the context",
      { messages: [user("lake ".repeat(1_200))] },
      "messages",
      /the context is full \(2048 tokens\)/,
    ],
  ];
  for (const [what, options, param, message] of refusals) {
    test(`${name}: refuses ${what}, streamed or not`, async () => {
      for (const asked of [ask, chunksOf]) {
        await assert.rejects(asked(options as never), (error) => {
          assert.ok(error instanceof OpenAI.BadRequestError, String(error));
          assert.equal(error.param, param);
          return message.test(error.message);
        });
      }
    });
  }

  test(`${name}: only its own key opens a session`, async () => {
    const { first, second } = sessions;
    for (const key of [second.key, "another", `${first.key}x`]) {
      await assert.rejects(ask({}, clientOf({ url: first.url, key })), OpenAI.AuthenticationError);
    }
    const nowhere = clientOf({ url: first.url.replace(/[0-9a-f]{8}$/, "00000000"), key: first.key });
    await assert.rejects(ask({}, nowhere), OpenAI.NotFoundError);
    const { data } = await clientOf().models.list();
    assert.equal(data[0]?.id, "policy");
  });

  test(`${name}: a client that disconnects ends its generation`, async () => {
    const long = { model: "policy", messages: [user("tell me all")], max_tokens: 1_500 };
    await record.abandon(async () => {
      const stream = await clientOf().chat.completions.create({ ...long, stream: true });
      for await (const { choices } of stream) if ((choices[0]?.delta.content ?? "") !== "") break;
      stream.controller.abort();
    });
    await record.abandon(async () => {
      const controller = new AbortController();
      let waiting: Promise<unknown> = Promise.resolve();
      await record.untilItRuns(() => {
        waiting = clientOf().chat.completions.create(long, { signal: controller.signal });
        return waiting;
      });
      controller.abort();
      await waiting.catch((error) => assert.ok(error instanceof OpenAI.APIUserAbortError, String(error)));
    });
  });
};
