/** Calls that demand a format, a call of a tool or several answers, and the record that they leave. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CallKind, LimitReachedError, type Policy, type PolicyGeneration } from "@hone/agents";
import { checkSample, FinishReason } from "@hone/rl";
import { type ChatMessage, ChatRenderer, type ChatTool } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { checksOf, demandsOf } from "./demands.ts";
import { SessionBusyError } from "./errors.ts";
import { problemOfSchema, problemOfText } from "./response-format.ts";
import type { ReplyEvent, SessionRequest } from "./session-call.ts";
import { openTestSession, requestOf, type TestSessionOptions } from "./testing.ts";

const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
};
const FORMAT = { schema: SCHEMA, description: "" };
const TOOLS: readonly ChatTool[] = ["look", "wait"].map((name) => ({
  type: "function",
  function: { name, description: "", parameters: { type: "object", properties: {} } },
}));
const callOf = (name: string) => `<tool_call>\n{"name": "${name}", "arguments": {}}\n</tool_call>`;
const user = (content: string): ChatMessage => ({ role: "user", content });
const system: ChatMessage = { role: "system", content: "Be kind." };

interface Seen {
  readonly prompt: string;
  readonly seed: number;
}

/** A session whose model writes these texts, one for each call of the policy. */
function sessionOf(answers: readonly (string | Error)[], options: TestSessionOptions = {}) {
  const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
  const { tokenizer } = renderer;
  const seen: Seen[] = [];
  const policy: Policy = {
    async generate({ promptIds, seed, signal, onTokens }): Promise<PolicyGeneration> {
      const answer = answers[seen.push({ prompt: tokenizer.decode(promptIds), seed }) - 1] ?? "No.";
      if (answer === "waits") {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      if (answer instanceof Error) throw answer;
      const tokenIds = [...tokenizer.encode(answer), tokenizer.eosTokenId!];
      for (const id of tokenIds) onTokens?.([id]);
      return {
        tokenIds,
        logprobs: tokenIds.map(() => -1),
        versions: [{ version: 0, tokenCount: tokenIds.length }],
        finishReason: FinishReason.stop,
        cachedTokens: 0,
        generationMs: 1,
        replica: "test",
      };
    },
  };
  const opened = openTestSession(renderer, policy, options);
  let numAsked = 0;
  const ask = (
    messages: readonly ChatMessage[],
    changes: Partial<SessionRequest> = {},
    onEvent?: (event: ReplyEvent, answer: number) => void,
  ) =>
    opened.session.answer(requestOf(messages, changes), {
      replyId: String(numAsked++),
      role: undefined,
      signal: new AbortController().signal,
      onEvent,
    });
  return { ...opened, ask, seen };
}

describe("a response format", () => {
  test("is told at the end of the last message, and the answer is returned and recorded as it is", async () => {
    const { ask, seen, session, conversation } = sessionOf(["Paris, I guess.", '{"city": "Paris"}']);
    const [said] = await ask([system, user("Where?")], { responseFormat: FORMAT });
    assert.equal(said?.text, "Paris, I guess.");
    assert.deepEqual(said.checks, [{ demand: "response_format", problem: "the answer is no JSON" }]);
    const prompt = seen[0]?.prompt ?? "";
    assert.ok(prompt.includes(`Where?\n\nAnswer with one JSON value`));
    assert.ok(prompt.includes(`${JSON.stringify(SCHEMA)}<|im_end|>`));
    assert.ok(prompt.startsWith("<|im_start|>system\nBe kind.<|im_end|>"));
    const [written] = await ask([user("Where?")], { responseFormat: FORMAT });
    assert.deepEqual(written?.checks, [{ demand: "response_format", problem: undefined }]);
    const metrics = session.metrics();
    assert.deepEqual([metrics.response_format_met, metrics.response_format_unmet], [1, 1]);
    const { turns, samples } = conversation.record();
    assert.deepEqual(
      turns.map(({ info }) => info?.response_format),
      ["the answer is no JSON", "met"],
    );
    assert.ok(samples.every(({ lossMask }) => lossMask.includes(1)));
  });

  test("is told again in short, and the conversation continues the recorded tokens", async () => {
    const { ask, seen, conversation } = sessionOf(['{"city": "Paris"}', '{"city": "Rome"}', "Bye."]);
    const history: ChatMessage[] = [system, user("Where?")];
    for (const next of ["And then?", "Thanks."]) {
      const [reply] = await ask(history, { responseFormat: FORMAT });
      history.push({ role: "assistant", content: reply!.text }, user(next));
    }
    await ask(history);
    assert.deepEqual(
      conversation.turns.map(({ kind }) => kind),
      [CallKind.first, CallKind.extension, CallKind.extension],
    );
    const { samples } = conversation.record();
    assert.equal(samples.length, 1);
    checkSample(samples[0]!, "the sample");
    const last = seen[2]?.prompt ?? "";
    assert.equal(last.split(JSON.stringify(SCHEMA)).length, 2, "the schema is told once");
    assert.match(last, /And then\?\n\nAnswer with one JSON value that fits the JSON schema given before\./);
    assert.match(last, /Thanks\.<\|im_end|>/);
  });

  test("of another schema is told in full", async () => {
    const { ask, seen } = sessionOf(['{"city": "Paris"}', "{}"]);
    const [reply] = await ask([user("Where?")], { responseFormat: FORMAT });
    await ask([user("Where?"), { role: "assistant", content: reply!.text }, user("Who?")], {
      responseFormat: { schema: { type: "object" }, description: "A person." },
    });
    assert.match(seen[1]?.prompt ?? "", /Who\?\n\n.* below\. .*\nA person\.\n\{"type":"object"\}/s);
  });

  test("is a message of its own after an answer", async () => {
    const { ask, seen } = sessionOf(["{}"]);
    await ask([user("Where?"), { role: "assistant", content: "Here." }], {
      responseFormat: { schema: undefined, description: "" },
    });
    assert.match(
      seen[0]?.prompt ?? "",
      /Here\.<\|im_end\|>\n<\|im_start\|>user\nAnswer with one JSON object\./,
    );
  });

  test("is not asked of an answer that calls tools", async () => {
    const { ask, seen } = sessionOf([callOf("look")]);
    const [reply] = await ask([user("Where?")], { responseFormat: FORMAT, tools: TOOLS });
    assert.deepEqual(reply?.checks, []);
    assert.match(seen[0]?.prompt ?? "", /You may call tools first\./);
  });

  for (const [text, problem] of [
    ['{"city": "Paris", "days": 3}', undefined],
    [' \n{"city": "Paris"}\n', undefined],
    ['```json\n{"city": "Paris"}\n```', /is no JSON$/],
    ["", /is no JSON$/],
    ['{"city": 3}', /does not fit the schema: city: /],
    ["[]", /does not fit the schema/],
  ] as const) {
    test(`is ${problem === undefined ? "met" : "not met"} by ${JSON.stringify(text)}`, () => {
      const found = problemOfText(FORMAT, text);
      if (problem === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", problem);
    });
  }

  test("without a schema is met by any object, and only by an object", () => {
    const any = { schema: undefined, description: "" };
    assert.equal(problemOfText(any, '{"a": [1]}'), undefined);
    for (const text of ["[1]", "null", "3", '"a"']) {
      assert.match(problemOfText(any, text) ?? "", /no JSON object/);
    }
  });

  test("whose schema takes too long to check is not met, and is refused once that is known", () => {
    // Each level doubles the alternatives.
    const $defs: Record<string, object> = { a0: { type: "string" } };
    for (let i = 1; i <= 40; i++) {
      $defs[`a${i}`] = { allOf: [{ $ref: `#/$defs/a${i - 1}` }, { $ref: `#/$defs/a${i - 1}` }] };
    }
    const schema = { $ref: "#/$defs/a40", $defs };
    assert.match(problemOfSchema(schema) ?? "", /takes longer than/);
  });
});

describe("a demand for a call", () => {
  test("is told for the answer that it is about, and the next call continues without it", async () => {
    const { ask, seen, session, conversation } = sessionOf([callOf("look"), "A lake."]);
    const messages = [system, user("Where?")];
    const [called] = await ask(messages, { tools: TOOLS, toolChoice: "required" });
    assert.deepEqual(called?.checks, [{ demand: "tool_choice", problem: undefined }]);
    const answer = session.conversationUpTo("0")!.at(-1)!;
    const id = called.calls[0]!.id;
    await ask([...messages, answer, { role: "tool", content: "water", tool_call_id: id }], { tools: TOOLS });
    const { samples, turns } = conversation.record();
    assert.equal(samples.length, 1);
    assert.equal(turns[0]?.info?.tool_choice, "met");
    assert.equal(turns[1]?.info?.tool_choice, undefined);
    assert.match(seen[0]?.prompt ?? "", /Where\?\n\nCall at least one tool in this answer\.<\|im_end\|>/);
    assert.equal(seen[1]?.prompt.split("Call at least one tool").length, 2);
  });

  test("of a tool by its name shows all tools, and names the one", async () => {
    const { ask, seen, session } = sessionOf([callOf("wait"), callOf("look"), "No."]);
    const checks = [];
    for (let i = 0; i < 3; i++) {
      const [reply] = await ask([user("Where?")], { tools: TOOLS, toolChoice: { name: "look" } });
      checks.push(reply?.checks[0]?.problem);
    }
    assert.deepEqual(checks, [
      "the answer calls wait and not only look",
      undefined,
      "the answer does not call look",
    ]);
    const prompt = seen[0]?.prompt ?? "";
    assert.match(prompt, /Call the tool "look" in this answer, and no other tool\./);
    assert.match(prompt, /"wait"/);
    const metrics = session.metrics();
    assert.deepEqual([metrics.tool_choice_met, metrics.tool_choice_unmet], [1, 2]);
  });

  test("is none if the model may choose, or has no tools to call", () => {
    for (const toolChoice of ["auto", "none"] as const) {
      const request = requestOf([user("Where?")], { tools: TOOLS, toolChoice });
      assert.deepEqual(demandsOf(request), []);
      assert.deepEqual(checksOf(request, { text: "", calls: [] }), []);
    }
  });
});

describe("a call for several answers", () => {
  test("samples each with a seed of its own, as a turn and a sample of its own that is trained", async () => {
    const { ask, seen, session, conversation } = sessionOf(["one", "two", "three"]);
    const replies = await ask([user("Which?")], { numAnswers: 3 });
    assert.deepEqual(
      replies.map(({ text }) => text),
      ["one", "two", "three"],
    );
    assert.equal(new Set(seen.map(({ seed }) => seed)).size, 3);
    assert.equal(new Set(seen.map(({ prompt }) => prompt)).size, 1);
    const { samples, turns } = conversation.record();
    assert.deepEqual(
      turns.map(({ info }) => info?.answer),
      [0, 1, 2],
    );
    assert.equal(samples.length, 3);
    for (const [index, sample] of samples.entries()) {
      checkSample(sample, `sample ${index}`);
      const { sampledBegin, sampledEnd } = turns.find((turn) => turn.sample === index)!;
      const trained = [...sample.lossMask].flatMap((bit, at) => (bit === 1 ? [at] : []));
      assert.deepEqual(
        trained,
        Array.from({ length: sampledEnd - sampledBegin }, (_, at) => sampledBegin + at),
      );
    }
    assert.equal(session.metrics().session_calls, 1);
  });

  test("may come in the middle, and the agent goes on from any of them", async () => {
    const { ask, session, conversation } = sessionOf(["Hello.", "left", "right", "There."]);
    const before = [user("Hi"), { role: "assistant" as const, content: "Hello." }, user("Where?")];
    await ask([user("Hi")]);
    const [, second] = await ask(before, { numAnswers: 2 });
    await ask([...before, { role: "assistant", content: second!.text }, user("Go.")]);
    const { samples, turns } = conversation.record();
    assert.equal(samples.length, 2);
    assert.equal(turns.at(-1)?.kind, CallKind.extension);
    assert.equal(turns.at(-1)?.sample, turns[2]?.sample);
    // Nothing drifted: the branch is what was asked for.
    assert.equal(session.metrics().drift_branch, 0);
    assert.ok(turns.every(({ info }) => info?.drift === undefined));
  });

  test("with a seed gives the same answers again, each with a seed of its own", async () => {
    const { ask, seen } = sessionOf([]);
    await ask([user("Which?")], { numAnswers: 2, seed: 7 });
    await ask([user("Which?")], { numAnswers: 2, seed: 7 });
    await ask([user("Which?")], { seed: 7 });
    const [a, b, c, d, e] = seen.map(({ seed }) => seed);
    assert.notEqual(a, b);
    assert.deepEqual([c, d, e], [a, b, a]);
  });

  test("streams them side by side, each with its index", async () => {
    const { ask } = sessionOf(["one", "two"]);
    const told = ["", ""];
    const ended: number[] = [];
    const replies = await ask([user("Which?")], { numAnswers: 2 }, (event, answer) => {
      if (event.kind === "text") told[answer] += event.text;
      if (event.kind === "end") ended.push(answer);
    });
    assert.deepEqual(told, ["one", "two"]);
    assert.deepEqual(
      replies.map(({ text }) => text),
      told,
    );
    assert.deepEqual(ended, [0, 1]);
  });

  test("fails with the first of them that fails, and the others end without being trained", async () => {
    const { ask, conversation } = sessionOf(["waits", new Error("the engine fell over"), "waits"]);
    await assert.rejects(ask([user("Which?")], { numAnswers: 3 }), /the engine fell over/);
    const { samples, turns } = conversation.record();
    assert.equal(samples.length, 0);
    assert.deepEqual(
      turns.map(({ finishReason }) => finishReason),
      [FinishReason.aborted, FinishReason.aborted],
    );
  });

  test("needs as many turns, and as much room among the calls at once", async () => {
    const { ask } = sessionOf(["one"], { maxTurns: 2 });
    await assert.rejects(ask([user("Which?")], { numAnswers: 3 }), LimitReachedError);
    const waiting = sessionOf(Array.from({ length: 60 }, () => "waits"));
    const begun = waiting.ask([user("Which?")], { numAnswers: 60 });
    begun.catch(() => undefined);
    await assert.rejects(waiting.ask([user("Which?")], { numAnswers: 5 }), SessionBusyError);
    assert.equal((await waiting.ask([user("Which?")], { numAnswers: 4 })).length, 4);
    waiting.hosted.close();
    await assert.rejects(begun, /is not open/);
  });

  test("tells a demand to each, and goes on from any", async () => {
    const { ask, conversation } = sessionOf(["A.", '{"city": "Rome"}', "Thanks."]);
    const [first, second] = await ask([user("Where?")], { numAnswers: 2, responseFormat: FORMAT });
    assert.deepEqual(
      [first, second].map((reply) => reply?.checks[0]?.problem),
      ["the answer is no JSON", undefined],
    );
    await ask([user("Where?"), { role: "assistant", content: second!.text }, user("Thanks.")]);
    assert.equal(conversation.turns.at(-1)?.kind, CallKind.extension);
  });
});
