import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { checkSample, FinishReason, type Sample } from "@hone/rl";
import { type ChatMessage, ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, FORGETFUL_TEMPLATE } from "@hone/tokenizer/testing";
import type { PolicyGeneration } from "../policies/policy.ts";
import { Conversation } from "./conversation.ts";

const tokenizer = chatmlTokenizer();
const renderer = new ChatRenderer(tokenizer);
const stopId = tokenizer.eosTokenId!;
const user = (content: string): ChatMessage => ({ role: "user", content });

function generation(
  text: string,
  finishReason: FinishReason = FinishReason.stop,
  version = 0,
): PolicyGeneration {
  const ids = tokenizer.encode(text);
  const tokenIds = finishReason === FinishReason.stop ? [...ids, stopId] : [...ids];
  return {
    tokenIds,
    logprobs: tokenIds.map((_, index) => -0.5 - index),
    versions: [{ version, tokenCount: tokenIds.length }],
    finishReason,
    cachedTokens: 0,
    generationMs: 1,
    replica: "a",
  };
}

/** Makes calls with given answers, and keeps what the engine saw and sampled beside the record. */
class Tape {
  readonly conversation: Conversation;
  readonly calls: { promptIds: readonly number[]; sampled: readonly number[] }[] = [];

  constructor(chat = renderer) {
    this.conversation = new Conversation(chat);
  }

  say(messages: readonly ChatMessage[], answer: PolicyGeneration, role = ""): ChatMessage {
    const prepared = this.conversation.prepare(messages, [], role);
    const turn = this.conversation.commit(prepared, answer);
    this.calls.push({ promptIds: prepared.promptIds, sampled: answer.tokenIds });
    return { role: "assistant", content: turn.responseText };
  }

  /** Checks that the record has each call's context and answer, and that each sampled token is trained exactly once. */
  check(): Sample[] {
    const samples = this.conversation.record().samples;
    for (const [index, sample] of samples.entries()) checkSample(sample, `sample ${index}`);
    const { turns } = this.conversation;
    assert.equal(turns.length, this.calls.length);
    for (const [index, { promptIds, sampled }] of this.calls.entries()) {
      const turn = turns[index]!;
      const { tokenIds, lossMask } = samples[turn.sample]!;
      const ids = Array.from(tokenIds);
      assert.deepEqual(ids.slice(0, turn.sampledBegin), [...promptIds]);
      assert.deepEqual(ids.slice(turn.sampledBegin, turn.sampledEnd), [...sampled]);
      assert.ok(lossMask.subarray(turn.sampledBegin, turn.sampledEnd).every((bit) => bit === 1));
    }
    const masked = samples.reduce(
      (total, { lossMask }) => total + lossMask.reduce((sum, bit) => sum + bit, 0),
      0,
    );
    assert.equal(
      masked,
      this.calls.reduce((total, { sampled }) => total + sampled.length, 0),
    );
    return samples;
  }
}

describe("Conversation", () => {
  test("two roles that answer one conversation in turn have samples of their own, each token trained once", () => {
    const tape = new Tape();
    const messages = [user("begin")];
    for (const [role, text] of [
      ["white", "one"],
      ["black", "two"],
      ["white", "three"],
    ] as const) {
      messages.push(tape.say(messages, generation(text), role), user("go on"));
    }
    const samples = tape.check();
    assert.deepEqual(
      samples.map(({ role }) => role),
      ["white", "black", "white"],
    );
    assert.deepEqual(
      samples.map(({ lossMask }) => lossMask.reduce((sum, bit) => sum + bit, 0)),
      tape.calls.map(({ sampled }) => sampled.length),
    );
  });

  test("a role that answers alone continues its sample", () => {
    const tape = new Tape();
    const first = [user("begin")];
    const answer = tape.say(first, generation("one"), "white");
    tape.say([...first, answer, user("go on")], generation("two"), "white");
    assert.deepEqual(
      tape.check().map(({ role }) => role),
      ["white"],
    );
  });

  test("a growing conversation is one sample, whose text is what the template renders", () => {
    const tape = new Tape();
    const messages: ChatMessage[] = [user("one")];
    for (const text of ["first", "second", "third"])
      messages.push(tape.say(messages, generation(text)), user(`after ${text}`));
    const [sample, ...others] = tape.check();
    assert.equal(others.length, 0);
    const text = renderer.render(messages).text;
    assert.ok(text.startsWith(tokenizer.decode(Array.from(sample!.tokenIds))));
  });

  test("sampled tokens are kept, even if their text would be tokenized differently", () => {
    const tape = new Tape();
    // "the" is a single token; these tokens spell it letter by letter.
    const tokenIds = [..."the"].map((letter) => tokenizer.tokenId(letter)!).concat(stopId);
    assert.notDeepEqual(tokenizer.encode("the"), tokenIds.slice(0, -1));
    const answer = { ...generation("xyz"), tokenIds };
    const first = [user("say the")];
    const reply = tape.say(first, answer);
    assert.equal(reply.content, "the");
    tape.say([...first, reply, user("again")], generation("no"));
    const [sample, ...others] = tape.check();
    assert.equal(others.length, 0);
    const { sampledBegin, sampledEnd } = tape.conversation.turns[0]!;
    assert.deepEqual(Array.from(sample!.tokenIds).slice(sampledBegin, sampledEnd), tokenIds);
  });

  test("an answer that was cut off is closed by the template, with tokens that are not trained", () => {
    const tape = new Tape();
    const first = [user("count")];
    const reply = tape.say(first, generation("1, 2, 3", FinishReason.length));
    tape.say([...first, reply, user("go on")], generation("4"));
    const [sample] = tape.check();
    const end = tape.conversation.turns[0]!.sampledEnd;
    assert.equal(sample!.tokenIds[end], stopId);
    assert.equal(sample!.lossMask[end], 0);
  });

  test("prompts that do not continue one another become separate samples", () => {
    const tape = new Tape();
    for (const text of ["a", "b", "c"]) tape.say([user(text)], generation(text));
    assert.equal(tape.check().length, 3);
  });

  test("a changed history starts a new sample", () => {
    const tape = new Tape();
    const first = [user("one")];
    tape.say(first, generation("two"));
    tape.say([...first, { role: "assistant", content: "TWO" }, user("three")], generation("four"));
    assert.equal(tape.check().length, 2);
  });

  test("with a template that drops earlier thoughts, each turn starts a new sample", () => {
    const tape = new Tape(new ChatRenderer(chatmlTokenizer(FORGETFUL_TEMPLATE)));
    const messages: ChatMessage[] = [user("one")];
    for (const text of ["<think>a</think>1", "<think>b</think>2"]) {
      messages.push(tape.say(messages, generation(text)), user("more"));
    }
    const samples = tape.check();
    assert.equal(samples.length, 2);
    assert.ok(!tokenizer.decode(Array.from(samples[1]!.tokenIds)).includes("<think>a"));
  });

  test("a branch from an earlier turn repeats its tokens without training them again", () => {
    const tape = new Tape();
    const first = [user("one")];
    const reply = tape.say(first, generation("two"));
    tape.say([...first, reply, user("left")], generation("L"));
    tape.say([...first, reply, user("right")], generation("R"));
    const [trunk, branch, ...others] = tape.check();
    assert.equal(others.length, 0);
    const { sampledBegin, sampledEnd } = tape.conversation.turns[0]!;
    assert.deepEqual(
      Array.from(branch!.tokenIds).slice(sampledBegin, sampledEnd),
      Array.from(trunk!.tokenIds).slice(sampledBegin, sampledEnd),
    );
    assert.ok(branch!.lossMask.subarray(sampledBegin, sampledEnd).every((bit) => bit === 0));
  });

  test("when two calls continue from one point at once, the later answer becomes a branch", () => {
    const conversation = new Conversation(renderer);
    const first = [user("one")];
    const opening = conversation.commit(conversation.prepare(first), generation("two"));
    const history = [...first, { role: "assistant" as const, content: opening.responseText }];
    const left = conversation.prepare([...history, user("left")]);
    const right = conversation.prepare([...history, user("right")]);
    assert.equal(conversation.commit(right, generation("R")).sample, 0);
    assert.equal(conversation.commit(left, generation("L")).sample, 1);
    const [trunk, branch] = conversation.record().samples;
    assert.match(tokenizer.decode(Array.from(trunk!.tokenIds)), /two.*right/s);
    assert.match(tokenizer.decode(Array.from(branch!.tokenIds)), /two.*left/s);
    assert.equal(
      branch!.lossMask.reduce((sum, bit) => sum + bit, 0),
      generation("L").tokenIds.length,
    );
  });

  test("versions of neighbouring tokens are joined", () => {
    const tape = new Tape();
    const messages: ChatMessage[] = [user("one")];
    for (const version of [3, 3, 4])
      messages.push(tape.say(messages, generation("x", FinishReason.stop, version)), user("y"));
    assert.deepEqual(tape.check()[0]!.versions, [
      { version: 3, tokenCount: 4 },
      { version: 4, tokenCount: 2 },
    ]);
  });

  test("whatever an agent does with its history, the record matches what the engine saw", () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new Random(seed);
      const tape = new Tape(
        random.next() < 0.2 ? new ChatRenderer(chatmlTokenizer(FORGETFUL_TEMPLATE)) : renderer,
      );
      let messages: ChatMessage[] = [user("start")];
      const points: ChatMessage[][] = [];
      for (let call = 0; call < 8; call++) {
        const text = random.pick(["the", "in a", "<think>hm</think>ok", "é√", "", " spaced "]);
        const finish = random.next() < 0.2 && text !== "" ? FinishReason.length : FinishReason.stop;
        const reply = tape.say(messages, generation(text, finish, random.nextInt(3)));
        points.push([...messages, reply]);
        const choice = random.next();
        if (choice < 0.5) messages = [...messages, reply, user(`${call}`)];
        else if (choice < 0.7) messages = [...random.pick(points), user(`back ${random.nextInt(2)}`)];
        else if (choice < 0.85) messages = [user(random.pick(["fresh", "start"]))];
        else messages = [...messages.slice(-1), reply, user("window")];
      }
      tape.check();
    }
  });
});
