/**
 * Checks generated conversations, which are extended, branched, edited or compacted, with parallel calls, tools, several
 * roles, stop texts, demands, several answers and abandoned calls: the record holds what the engine saw, and trains each sampled token at most once.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CallKind, type GenerateCall, type Policy, type PolicyGeneration } from "@hone/agents";
import { Random } from "@hone/core";
import { checkSample, FinishReason } from "@hone/rl";
import { type ChatMessage, ChatRenderer, type ChatTool } from "@hone/tokenizer";
import { chatmlTokenizer, FORGETFUL_TEMPLATE, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { SessionOverError } from "./errors.ts";
import type { OpenRole } from "./open-session.ts";
import type { ResponseFormat } from "./response-format.ts";
import { SessionHost } from "./session-host.ts";
import { openTestSession, requestOf } from "./testing.ts";

const NUM_CONVERSATIONS = 2_400;
const MAX_CALLS = 7;
const ROLES: ReadonlyMap<string, OpenRole> = new Map([
  ["solver", { name: "solver", learns: true, policy: undefined }],
  ["critic", { name: "critic", learns: false, policy: undefined }],
]);
const TOOL: ChatTool = {
  type: "function",
  function: { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } },
};
const FORMATS: readonly ResponseFormat[] = [
  { schema: undefined, description: "" },
  { schema: { type: "object" }, description: "Any." },
];
const WORDS = ["the", "in", " a", "yes", "no. ", "\n", "STOP", "é", "</think>", "<think>", "  "];
const CALL = '<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>';

/** One call as the engine saw it. */
interface Seen {
  readonly promptIds: readonly number[];
  readonly tokenIds: readonly number[];
}

/** Samples arbitrary words, sometimes letter by letter, as no tokenizer would encode them. */
class AnyWords implements Policy {
  readonly seen: Seen[] = [];
  readonly #renderer: ChatRenderer;
  readonly #random: Random;
  /** Calls wait for it, so that calls which are made together are under way together. */
  gate: Promise<void> = Promise.resolve();

  constructor(renderer: ChatRenderer, random: Random) {
    this.#renderer = renderer;
    this.#random = random;
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const { tokenizer } = this.#renderer;
    const random = this.#random;
    let tokenIds: number[] = [];
    const count = 1 + random.nextInt(5);
    for (let i = 0; i < count; i++) {
      const word = WORDS[random.nextInt(WORDS.length)]!;
      const isSpelled = /^[a-z]+$/.test(word) && random.nextInt(3) === 0;
      tokenIds.push(
        ...(isSpelled ? [...word].map((letter) => tokenizer.tokenId(letter)!) : tokenizer.encode(word)),
      );
    }
    if (random.nextInt(4) === 0) tokenIds.push(...tokenizer.encode(CALL));
    const all = [...tokenIds, tokenizer.eosTokenId!];
    tokenIds = all.slice(0, call.sampling.maxNewTokens);
    await this.gate;
    call.signal.throwIfAborted();
    for (const id of tokenIds) call.onTokens?.([id]);
    call.signal.throwIfAborted();
    this.seen.push({ promptIds: call.promptIds, tokenIds });
    return {
      tokenIds,
      logprobs: tokenIds.map((_, index) => -(index + 1) / 8),
      versions: [{ version: random.nextInt(2), tokenCount: tokenIds.length }],
      finishReason: tokenIds.length === all.length ? FinishReason.stop : FinishReason.length,
      cachedTokens: 0,
      generationMs: 1,
      replica: "test",
    };
  }
}

/** What an agent does to its history before the next call. */
function nextMessages(random: Random, history: readonly ChatMessage[]): ChatMessage[] {
  const user: ChatMessage = { role: "user", content: `go on ${random.nextInt(3)}` };
  const last = history.at(-1);
  const results = (last?.tool_calls ?? []).map(
    ({ id }): ChatMessage => ({ role: "tool", content: `seen ${random.nextInt(9)}`, tool_call_id: id }),
  );
  const extended = [...history, ...(results.length > 0 ? results : [user])];
  switch (random.nextInt(8)) {
    case 0: {
      // It goes back to an earlier point, before or after an answer.
      const at = 1 + random.nextInt(history.length);
      const cut = history.slice(0, at);
      return cut.at(-1)?.role === "assistant" ? [...cut, user] : cut;
    }
    case 1: {
      // It changes one message.
      const at = random.nextInt(extended.length);
      return extended.map((message, index) =>
        index === at && message.role !== "tool" ? { ...message, content: `${message.content}!` } : message,
      );
    }
    case 2:
      // It drops all messages but the first and the last.
      return [extended[0]!, { role: "user", content: "So far: much." }, user];
    case 3:
      return [{ role: "user", content: `another ${random.nextInt(4)}` }];
    default:
      return extended;
  }
}

interface Call {
  readonly role: string;
  readonly isKept: boolean;
}

async function play(random: Random, renderer: ChatRenderer): Promise<void> {
  const policy = new AnyWords(renderer, random);
  const { session, conversation, hosted } = openTestSession(renderer, policy, { roles: ROLES });
  const histories: ChatMessage[][] = [];
  const calls: Call[] = [];
  const ask = async (messages: ChatMessage[], isCancelled: boolean) => {
    const role = random.nextInt(4) === 0 ? "critic" : "solver";
    const client = new AbortController();
    if (isCancelled) client.abort();
    const told: string[] = [];
    const hasStop = random.nextInt(5) === 0;
    const numAnswers = random.nextInt(6) === 0 ? 2 + random.nextInt(2) : 1;
    const request = requestOf(messages, {
      numAnswers,
      model: role,
      tools: random.nextInt(2) === 0 ? [TOOL] : [],
      stopTexts: hasStop ? ["STOP", "in"] : [],
      maxNewTokens: 1 + random.nextInt(40),
      ...(random.nextInt(4) === 0 && { responseFormat: FORMATS[random.nextInt(FORMATS.length)]! }),
    });
    const isStreamed = random.nextInt(2) === 0;
    const replyId = `${calls.length}-${random.nextInt(1_000_000)}`;
    const before = policy.seen.length;
    try {
      const replies = await session.answer(request, {
        replyId,
        role: undefined,
        signal: client.signal,
        onEvent: isStreamed
          ? (event, answer) => {
              if (event.kind === "text") told[answer] = (told[answer] ?? "") + event.text;
            }
          : undefined,
      });
      assert.equal(replies.length, numAnswers);
      for (const [answer, reply] of replies.entries()) {
        if (isStreamed) assert.equal(told[answer] ?? "", reply.text);
        if (hasStop) assert.doesNotMatch(reply.text, /STOP|in/);
        calls.push({ role, isKept: true });
        const tool_calls = reply.calls.map(({ id, name, argumentsJson }) => {
          return { id, type: "function" as const, function: { name, arguments: JSON.parse(argumentsJson) } };
        });
        histories.push([
          ...messages,
          { role: "assistant", content: reply.text, ...(tool_calls.length > 0 && { tool_calls }) },
        ]);
      }
      assert.deepEqual(session.conversationUpTo(replyId)?.slice(0, -1), messages);
    } catch (error) {
      if (!isCancelled) throw error;
      assert.equal(policy.seen.length, before);
      for (let answer = 0; answer < numAnswers; answer++) calls.push({ role, isKept: false });
    }
  };
  const numRounds = 1 + random.nextInt(MAX_CALLS);
  for (let round = 0; round < numRounds; round++) {
    const from = histories[random.nextInt(Math.max(1, histories.length))];
    const messages =
      from === undefined ? [{ role: "user" as const, content: "Hi" }] : nextMessages(random, from);
    if (random.nextInt(5) > 0) await ask(messages, random.nextInt(8) === 0);
    else {
      const go = Promise.withResolvers<void>();
      policy.gate = go.promise;
      const together = [messages, messages, from === undefined ? messages : nextMessages(random, from)];
      const asking = together.map((each) => ask(each, false));
      go.resolve();
      await Promise.all(asking);
    }
  }
  hosted.close();
  check(policy.seen, conversation.record(), calls);
}

function check(
  seen: readonly Seen[],
  { samples, turns }: ReturnType<ReturnType<typeof openTestSession>["conversation"]["record"]>,
  calls: readonly Call[],
): void {
  for (const [index, sample] of samples.entries()) checkSample(sample, `sample ${index}`);
  assert.equal(turns.length, calls.length);
  // Positions of the record that were sampled and must be trained, each once.
  const trained = samples.map(({ tokenIds }) => new Uint8Array(tokenIds.length));
  const untold = [...seen];
  for (const turn of turns) {
    const sample = samples[turn.sample];
    if (turn.finishReason === FinishReason.aborted) {
      assert.equal(sample, undefined);
      continue;
    }
    if (sample === undefined) continue;
    const ids = Array.from(sample.tokenIds);
    const context = ids.slice(0, turn.sampledBegin);
    const sampled = ids.slice(turn.sampledBegin, turn.sampledEnd);
    // The engine saw exactly this context, and the record keeps the beginning of what it sampled.
    const at = untold.findIndex(
      ({ promptIds, tokenIds }) =>
        promptIds.length === context.length &&
        promptIds.every((id, index) => id === context[index]) &&
        sampled.every((id, index) => id === tokenIds[index]),
    );
    assert.ok(at >= 0, `turn ${turn.index} is not what an engine saw`);
    untold.splice(at, 1);
    const mask = sample.lossMask.subarray(turn.sampledBegin, turn.sampledEnd);
    const isTrained = mask[0] === 1;
    assert.ok(mask.every((bit) => (bit === 1) === isTrained));
    if (!isTrained) continue;
    for (let i = turn.sampledBegin; i < turn.sampledEnd; i++) {
      assert.equal(trained[turn.sample]![i], 0, "a token is trained twice");
      trained[turn.sample]![i] = 1;
    }
  }
  // Only tokens that a turn sampled have mask 1.
  for (const [index, sample] of samples.entries()) assert.deepEqual(sample.lossMask, trained[index]);
  const numTrained = turns.filter(
    ({ sample, sampledBegin }) => samples[sample]?.lossMask[sampledBegin] === 1,
  ).length;
  assert.equal(numTrained, calls.filter(({ role, isKept }) => isKept && role === "solver").length);
}

describe("the tokens of sessions", () => {
  const templates = { plain: undefined, tools: TOOL_TEMPLATE, forgetful: FORGETFUL_TEMPLATE };
  for (const [name, template] of Object.entries(templates)) {
    const renderer = new ChatRenderer(chatmlTokenizer(template));
    test(`are those that the engine saw, and each is trained once (${name} template)`, async () => {
      for (let seed = 0; seed < NUM_CONVERSATIONS / 3; seed++) {
        try {
          await play(new Random(seed), renderer);
        } catch (error) {
          throw new Error(`conversation ${seed}`, { cause: error });
        }
      }
    });
  }

  test("each of many credentials opens only its own session, and no session knows another's answers", async () => {
    const renderer = new ChatRenderer(chatmlTokenizer());
    const host = new SessionHost("http://127.0.0.1:1");
    const policy = new AnyWords(renderer, new Random(3));
    const opened = Array.from({ length: 60 }, () => openTestSession(renderer, policy, { host }));
    for (const [index, { session }] of opened.entries()) {
      const signal = new AbortController().signal;
      const messages = [{ role: "user" as const, content: `task ${index}` }];
      await session.answer(requestOf(messages), { replyId: `reply ${index}`, role: undefined, signal });
    }
    for (const [i, one] of opened.entries()) {
      assert.equal(host.find(one.session.id), one.session);
      for (const [j, other] of opened.entries()) {
        assert.equal(one.session.isKey(other.hosted.key), i === j);
        assert.equal(one.session.conversationUpTo(`reply ${j}`) !== undefined, i === j);
      }
      assert.equal(one.conversation.record().samples.length, 1);
    }
    const { hosted, session, conversation } = opened[0]!;
    hosted.close();
    assert.throws(() => host.find(session.id), SessionOverError);
    const signal = new AbortController().signal;
    const late = session.answer(requestOf([{ role: "user", content: "late" }]), {
      replyId: "late",
      role: undefined,
      signal,
    });
    await assert.rejects(late, SessionOverError);
    assert.equal(conversation.turns.length, 1);
    assert.equal(host.numOpen, opened.length - 1);
  });

  test("each kind of call is recognised", async () => {
    const renderer = new ChatRenderer(chatmlTokenizer());
    const policy = new AnyWords(renderer, new Random(1));
    const { session, conversation } = openTestSession(renderer, policy);
    const user = (content: string): ChatMessage => ({ role: "user", content });
    const system: ChatMessage = { role: "system", content: "Be brief." };
    const ask = async (messages: ChatMessage[], changes = {}) => {
      const replyId = String(conversation.turns.length);
      const signal = new AbortController().signal;
      await session.answer(requestOf(messages, changes), { replyId, role: undefined, signal });
      return {
        kind: conversation.turns.at(-1)!.kind,
        messages: [...session.conversationUpTo(replyId)!],
      };
    };
    const first = await ask([system, user("one")]);
    assert.equal(first.kind, CallKind.first);
    const second = await ask([...first.messages, user("two")]);
    assert.equal(second.kind, CallKind.extension);
    const third = await ask([...second.messages, user("three")]);
    assert.equal(third.kind, CallKind.extension);
    const rows: [CallKind, ChatMessage[], object?][] = [
      [CallKind.branch, [system, user("one")]],
      [CallKind.branch, [...second.messages, user("another way")]],
      [
        CallKind.edited,
        [...first.messages, user("two"), { role: "assistant", content: "never said" }, user("3")],
      ],
      [CallKind.compacted, [system, user("in short: one, two"), user("three")]],
      [CallKind.compacted, [system, ...third.messages.slice(-2), user("four")]],
      [CallKind.unrelated, [user("something else")]],
    ];
    for (const [kind, messages, changes] of rows) {
      assert.equal((await ask(messages, changes)).kind, kind, JSON.stringify(messages));
    }
    assert.equal(session.metrics().drift_branch, 2);
    assert.equal(session.metrics().session_calls, 3 + rows.length);
  });
});
