/** The official client with a gateway that serves the policy of a run and a checkpoint. */
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { saveCheckpoint } from "@hone/checkpoint";
import { type Bucket, BucketName, openBucket } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { RunPhase, type RunState, RunStateSchema } from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import OpenAI from "openai";
import { readInferenceGatewayConfig } from "../config.ts";
import { inferenceGatewayService } from "../service.ts";

const ABOUT_A_PARAMETER = /^PARAMETER (is not accepted: .|(is|has) .*\bmust (be|have) .)/;
const ABOUT_A_MODEL = /; (it|its place) must be |request must go to /;

const API_KEY = "key-of-the-test";
const RUN = "lake-7";
const CHECKPOINT = "tiny";
/** A checkpoint without chat template. */
const PLAIN = "plain";
const tokenizer = chatmlTokenizer();
const spec = resolveModelSpec({
  vocabSize: tokenizer.vocabSize,
  hiddenSize: 32,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  maxPositions: 512,
  eosTokenIds: tokenizer.stopTokenIds,
  initializerRange: 0.3,
});
const messages = [{ role: "user" as const, content: "Tell me about the lake." }];
const REQUEST = { model: CHECKPOINT, messages, seed: 1, max_tokens: 40 };

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

describe("the official OpenAI client", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let runs: Bucket<RunState>;
  let service: RunningService;
  let client: OpenAI;

  before(async () => {
    folder = await temporaryFolder("openai");
    bus = await startBus();
    runs = await openBucket(bus, BucketName.runState, RunStateSchema);
    const checkpoint = path.join(folder.path, "checkpoint");
    const plain = path.join(folder.path, "plain");
    await save(checkpoint, 5);
    await save(plain, 6, false);
    const config = readInferenceGatewayConfig({
      HONE_NATS_URL: bus.server.url,
      HONE_STATE_DIR: folder.path,
      HONE_FILES: folder.path,
      HONE_INFERENCE_CACHE_MIB: "4",
      HONE_INFERENCE_SERVE: `${CHECKPOINT}=./checkpoint, ${PLAIN}=${plain}, missing=./nowhere`,
      HONE_INFERENCE_API_KEY: API_KEY,
    });
    service = await startService(inferenceGatewayService, { config, logger: silentLogger() });
    await service.becameReady;
    client = new OpenAI({ baseURL: `${service.http.url}/v1`, apiKey: API_KEY, maxRetries: 0 });
    await publish(1);
    await eventually("the models to be loaded", async () => (await client.models.list()).data.length === 3);
  });
  after(async () => {
    await service?.stop();
    await bus?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  async function save(place: string, seed: number, hasTemplate = true) {
    await mkdir(place, { recursive: true });
    const { "chat_template.jinja": template, ...files } = chatmlTokenizerFiles();
    const companions = hasTemplate ? { ...files, "chat_template.jinja": template! } : files;
    return saveCheckpoint(place, { spec, weights: initialiseWeights(spec, seed), companions });
  }

  async function publish(version: number, phase: RunPhase = RunPhase.ROLLOUT): Promise<void> {
    const location = path.join("runs", RUN, `${version}-1`);
    const { digest } = await save(path.join(folder.path, location), version);
    await runs.put(RUN, create(RunStateSchema, { runId: RUN, phase, version, location, digest }));
  }

  const chat = (options: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {}) =>
    client.chat.completions.create({ ...REQUEST, ...options });
  const chunksOf = async (options: Partial<OpenAI.ChatCompletionCreateParamsStreaming> = {}) =>
    collect(await client.chat.completions.create({ ...REQUEST, ...options, stream: true }));
  const textOf = (chunks: readonly OpenAI.ChatCompletionChunk[], index = 0) =>
    chunks
      .flatMap(({ choices }) => choices.filter((choice) => choice.index === index))
      .map(({ delta }) => delta.content ?? "")
      .join("");

  test("lists runs and checkpoints, and finds one by its name", async () => {
    const { data } = await client.models.list();
    assert.deepEqual(data.map(({ id }) => id).sort(), [RUN, PLAIN, CHECKPOINT].sort());
    const model = await client.models.retrieve(RUN);
    assert.deepEqual([model.object, model.id], ["model", RUN]);
    assert.ok(model.created > 1_700_000_000);
  });

  test("completes a chat, with usage", async () => {
    const answer = await chat();
    const [choice] = answer.choices;
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.model, CHECKPOINT);
    assert.equal(choice?.message.role, "assistant");
    assert.ok(choice.message.content !== "");
    const { usage } = answer;
    const prompt = "<|im_start|>user\nTell me about the lake.<|im_end|>\n<|im_start|>assistant\n";
    assert.equal(usage?.prompt_tokens, tokenizer.encode(prompt).length);
    assert.ok(usage.completion_tokens <= 40);
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
    assert.equal(choice.finish_reason, usage.completion_tokens === 40 ? "length" : "stop");
  });

  test("streams the same text", async () => {
    const whole = await chat();
    const chunks = await chunksOf();
    assert.equal(textOf(chunks), whole.choices[0]!.message.content);
    assert.deepEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" });
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, whole.choices[0]!.finish_reason);
    assert.ok(chunks.length > 3);
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
  });

  test("returns usage in the last chunk if the request asks for it", async () => {
    const chunks = await chunksOf({ stream_options: { include_usage: true } });
    const last = chunks.at(-1)!;
    assert.deepEqual(last.choices, []);
    assert.deepEqual(last.usage, (await chat()).usage);
    assert.ok(chunks.slice(0, -1).every(({ usage }) => usage === null));
  });

  test("returns several choices, which the seed makes repeatable", async () => {
    const { choices } = await chat({ n: 3 });
    assert.deepEqual(
      choices.map(({ index }) => index),
      [0, 1, 2],
    );
    const texts = choices.map(({ message }) => message.content);
    assert.equal(new Set(texts).size, 3);
    assert.equal(texts[0], (await chat()).choices[0]!.message.content);
    const chunks = await chunksOf({ n: 3 });
    assert.deepEqual(
      [0, 1, 2].map((index) => textOf(chunks, index)),
      texts,
    );
  });

  test("uses the seed, the temperature and the nucleus of the request", async () => {
    const content = async (options: Parameters<typeof chat>[0]) =>
      (await chat(options)).choices[0]!.message.content;
    const base = await content({});
    assert.notEqual(await content({ seed: 2 }), base);
    const greedy = await content({ temperature: 0 });
    assert.equal(await content({ temperature: 0, seed: 9 }), greedy);
    assert.equal(await content({ top_p: 1e-6 }), greedy);
    assert.equal(await content({ top_k: 1 } as never), greedy);
    assert.equal(await content({ min_p: 1 } as never), greedy);
    assert.notEqual(await content({ temperature: 0, presence_penalty: 2, frequency_penalty: 2 }), greedy);
    assert.notEqual(await content({ temperature: 0, repetition_penalty: 50 } as never), greedy);
  });

  test("ends before a stop text, also in a stream, and never returns a part of it", async () => {
    const text = (await chat()).choices[0]!.message.content!;
    const characters = [...text];
    const stop = characters.slice(8, 11).join("");
    const expected = text.slice(0, text.indexOf(stop));
    const [choice] = (await chat({ stop })).choices;
    assert.deepEqual([choice?.message.content, choice?.finish_reason], [expected, "stop"]);
    const chunks = await chunksOf({ stop: ["never seen", stop] });
    assert.equal(textOf(chunks), expected);
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, "stop");
    const usage = (await chat({ stop })).usage!;
    assert.ok(usage.completion_tokens < 40);
  });

  test("ends at the stop ids of the request, and ignores the model's own if the request asks for that", async () => {
    const whole = await chat({ ignore_eos: true } as never);
    assert.equal(whole.usage?.completion_tokens, 40);
    const most = Array.from({ length: 128 }, (_, id) => id);
    const ended = await chat({ ignore_eos: true, stop_token_ids: most, temperature: 2 } as never);
    assert.equal(ended.choices[0]?.finish_reason, "stop");
    assert.ok(ended.usage!.completion_tokens < 40);
  });

  test("returns the logprob of each token, also in a stream", async () => {
    const { choices, usage } = await chat({ logprobs: true, max_tokens: 12 });
    const { content } = choices[0]!.logprobs!;
    const isStopped = choices[0]!.finish_reason === "stop";
    assert.equal(content!.length, usage!.completion_tokens - Number(isStopped));
    for (const { logprob, top_logprobs } of content!) {
      assert.ok(logprob <= 0);
      assert.deepEqual(top_logprobs, []);
    }
    const chunks = await chunksOf({ logprobs: true, max_tokens: 12 });
    const streamed = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(streamed, content);
  });

  test("returns the most likely tokens at each position, for chats and texts", async () => {
    const { choices } = await chat({ logprobs: true, top_logprobs: 3, max_tokens: 6 });
    for (const { token, logprob, top_logprobs } of choices[0]!.logprobs!.content!) {
      assert.equal(top_logprobs.length, 3);
      const order = top_logprobs.map((top) => top.logprob);
      assert.deepEqual(
        order,
        [...order].sort((a, b) => b - a),
      );
      // Parts of characters have the same text.
      const isAmong = top_logprobs.some((top) => top.token === token && top.logprob === logprob);
      assert.ok(isAmong || logprob <= order.at(-1)!);
    }
    const chunks = await chunksOf({ logprobs: true, top_logprobs: 3, max_tokens: 6 });
    const streamed = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.deepEqual(streamed, choices[0]!.logprobs!.content);
    const text = await client.completions.create({
      model: PLAIN,
      prompt: "the lake",
      max_tokens: 4,
      logprobs: 2,
    });
    const { tokens, top_logprobs } = text.choices[0]!.logprobs!;
    for (const [i, token] of tokens!.entries()) assert.ok(token in top_logprobs![i]!);
  });

  test("continues a text or token ids", async () => {
    const ask = (prompt: string | number[] | string[]) =>
      client.completions.create({ model: PLAIN, prompt, seed: 3, max_tokens: 8, logprobs: 0 });
    const answer = await ask("the lake");
    assert.equal(answer.object, "text_completion");
    assert.equal(answer.usage?.prompt_tokens, tokenizer.encode("the lake").length);
    const ids = [...tokenizer.encode("the lake")];
    assert.equal((await ask(ids)).choices[0]?.text, answer.choices[0]?.text);
    assert.equal((await ask(["the lake"])).choices[0]?.text, answer.choices[0]?.text);
    const { token_logprobs, text_offset, tokens } = answer.choices[0]!.logprobs!;
    assert.deepEqual([token_logprobs?.length, text_offset?.length], [tokens?.length, tokens?.length]);
    const stream = await client.completions.create({
      model: PLAIN,
      prompt: "the lake",
      seed: 3,
      max_tokens: 8,
      stream: true,
    });
    const chunks = await collect(stream);
    assert.equal(chunks.map(({ choices }) => choices[0]?.text ?? "").join(""), answer.choices[0]?.text);
    assert.equal(
      (await client.completions.create({ model: PLAIN, prompt: "a" })).usage!.completion_tokens <= 16,
      true,
    );
  });

  test("uses the newest policy of a run, and does not find it when the run has ended", async () => {
    const first = await chat({ model: RUN });
    assert.equal(first.system_fingerprint, "version-1");
    await publish(2);
    await eventually(
      "the next version",
      async () => (await chat({ model: RUN })).system_fingerprint === "version-2",
    );
    await publish(2, RunPhase.COMPLETED);
    const found = () => client.models.list().then(({ data }) => data.some(({ id }) => id === RUN));
    await eventually("the run to be gone", async () => !(await found()));
    await assert.rejects(chat({ model: RUN }), OpenAI.NotFoundError);
  });

  test("ends the generation of a client that goes away", async () => {
    const running = async () => {
      const text = await (await fetch(`${service.http.url}/metrics`)).text();
      return Number(/^hone_engine_sequences_running(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1]);
    };
    const long = { model: CHECKPOINT, messages, max_tokens: 400, n: 64, temperature: 2 };
    const stream = await client.chat.completions.create({ ...long, stream: true });
    for await (const _ of stream) break;
    stream.controller.abort();
    await eventually("the streamed generation to end", async () => (await running()) === 0);
    const controller = new AbortController();
    const waiting = client.chat.completions.create(long, { signal: controller.signal });
    waiting.catch(() => undefined);
    await eventually("the generation to run", async () => (await running()) > 0);
    controller.abort();
    await assert.rejects(waiting, OpenAI.APIUserAbortError);
    await eventually("the generation to end", async () => (await running()) === 0);
  });

  type Refusal = [what: string, options: object, status: number, param: string | null, code: string | null];
  const refusals: Refusal[] = [
    ["a model that is not there", { model: "nothing" }, 404, "model", "model_not_found"],
    ["a checkpoint that cannot be loaded", { model: "missing" }, 503, "model", "model_failed"],
    ["a model without chat template", { model: PLAIN }, 400, "model", null],
    ["no messages", { messages: [] }, 400, "messages", null],
    [
      "a message of an unknown role",
      { messages: [{ role: "boss", content: "x" }] },
      400,
      "messages.0.role",
      null,
    ],
    [
      "an image",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
      400,
      "messages.0.content.0.type",
      null,
    ],
    ["a temperature out of range", { temperature: 3 }, 400, "temperature", null],
    ["a nucleus of nothing", { top_p: 0 }, 400, "top_p", null],
    ["no choices", { n: 0 }, 400, "n", null],
    ["too many choices", { n: 129 }, 400, "n", null],
    ["an empty stop text", { stop: "" }, 400, "stop", null],
    ["too many stop texts", { stop: ["a", "b", "c", "d", "e"] }, 400, "stop", null],
    ["no new tokens", { max_completion_tokens: 0 }, 400, "max_completion_tokens", null],
    ["more new tokens than the context", { max_tokens: 600 }, 400, "max_tokens", "context_length_exceeded"],
    [
      "a prompt beyond the context",
      { messages: [{ role: "user", content: "x y ".repeat(400) }] },
      400,
      "messages",
      "context_length_exceeded",
    ],
    ["tools", { tools: [{ type: "function", function: { name: "f" } }] }, 400, "tools", null],
    ["likely tokens without logprobs", { top_logprobs: 2 }, 400, "top_logprobs", null],
    ["too many likely tokens", { logprobs: true, top_logprobs: 21 }, 400, "top_logprobs", null],
    ["a schema", { response_format: { type: "json_object" } }, 400, "response_format", null],
    ["a penalty beyond the limits", { presence_penalty: 3 }, 400, "presence_penalty", null],
    ["a bias", { logit_bias: { "5": 1 } }, 400, "logit_bias", null],
  ];
  for (const [what, options, status, param, code] of refusals) {
    test(`is refused ${what}, streamed or not`, async () => {
      for (const ask of [chat, chunksOf]) {
        const error = await ask(options as never).then(
          () => assert.fail("answered"),
          (thrown: unknown) => thrown,
        );
        assert.ok(error instanceof OpenAI.APIError, String(error));
        assert.deepEqual([error.status, error.param, error.code], [status, param, code], error.message);
        // A message about a model names the model; every other one begins with its parameter.
        const said = error.message.replace(`${status} ${param} `, "PARAMETER ");
        assert.match(said, param === "model" ? ABOUT_A_MODEL : ABOUT_A_PARAMETER);
      }
    });
  }

  test("accepts parameters without an effect, and ignores unknown ones", async () => {
    const answer = await chat({
      tools: [],
      presence_penalty: 0,
      response_format: { type: "text" },
      user: "somebody",
      metadata: { a: "b" },
      stop: null,
      unknown_to_this_server: true,
    } as never);
    assert.equal(answer.choices[0]?.message.content, (await chat()).choices[0]?.message.content);
  });

  test("needs the key", async () => {
    const stranger = new OpenAI({ baseURL: `${service.http.url}/v1`, apiKey: "another", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
    assert.equal((await fetch(`${service.http.url}/v1/models`)).status, 401);
    assert.equal((await fetch(`${service.http.url}/health`)).status, 200);
  });

  test("is refused bodies that are too large or not JSON", async () => {
    const post = (body: string) =>
      fetch(`${service.http.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
        body,
      });
    const large = await post(
      JSON.stringify({ model: CHECKPOINT, messages: [{ role: "user", content: "x".repeat(2 ** 20) }] }),
    );
    assert.equal(large.status, 413);
    for (const body of ["", "{", "[]", '"x"', "[".repeat(10_000)]) {
      const answer = await post(body);
      assert.equal(answer.status, 400, body.slice(0, 10));
      const { error } = (await answer.json()) as { error: object };
      assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
    }
  });
});
