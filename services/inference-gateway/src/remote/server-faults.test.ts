/** An engine with a server that starts late, dies, comes back, refuses, or was started wrongly. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { FinishReason } from "@hone/rl";
import { eventually, temporaryFolder } from "@hone/testing";
import { EngineFailedError, InvalidRequestError, PolicyLoadError } from "../domain/errors.ts";
import { SglangServer } from "./sglang/sglang-server.ts";
import { ask, engineOver } from "./testing/engine-subject.ts";
import { FakeSglangServer } from "./testing/fake-sglang-server.ts";
import { type FakeVllmOptions, FakeVllmServer } from "./testing/fake-vllm-server.ts";
import { TEST_SPEC, writePolicy } from "./testing/policies.ts";
import { VllmServer } from "./vllm/vllm-server.ts";

const folder = await temporaryFolder("server-faults");
after(() => folder[Symbol.asyncDispose]());
const start = await writePolicy(folder.path, "start", 0);
const first = await writePolicy(folder.path, "m", 1);
const second = await writePolicy(folder.path, "m", 2);
const shared = {
  folder: start.folder,
  vocabularySize: TEST_SPEC.vocabSize,
  maxContextTokens: TEST_SPEC.maxPositions,
};
const overVllm = (change: Partial<FakeVllmOptions> = {}) =>
  engineOver(
    new FakeVllmServer({ ...shared, scoring: "processed", ...change }),
    (url) => new VllmServer({ url }),
  );
const overSglang = (keys: { readonly apiKey?: string; readonly adminKey?: string } = {}) =>
  engineOver(
    new FakeSglangServer({ ...shared, scoring: "tempered" }),
    (url) => new SglangServer({ url, ...keys }),
  );
const reloads = (server: FakeVllmServer) =>
  server.calls
    .filter(({ path }) => path === "POST /collective_rpc")
    .map(({ body }) => (body.kwargs as { weights_path: string }).weights_path);

describe("an engine with a server that fails", () => {
  for (const isNew of [true, false]) {
    test(`a server that dies during a stream comes back with the weights of the run (${isNew ? "new" : "old"} release)`, async () => {
      await using subject = await overVllm({ isNew });
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      server.beforeToken = async ({ ids }) => {
        if (ids.length === 6) await server.kill();
      };
      await assert.rejects(engine.generate(ask()), EngineFailedError);
      await eventually("the loss to be noticed", () => engine.state.kind === "away");
      assert.deepEqual(engine.capacity().models, []);
      await assert.rejects(engine.generate(ask()), EngineFailedError);
      server.beforeToken = () => undefined;
      await server.start();
      await eventually("the weights to be there again", () => engine.capacity().models.length === 1);
      const result = await engine.generate(ask());
      assert.deepEqual(result.versions, [{ version: 1, tokenCount: 20 }]);
      assert.deepEqual(reloads(server), [first.folder, first.folder]);
    });

    test(`a server that was replaced between two checks gets its weights (${isNew ? "new" : "old"} release)`, async () => {
      await using subject = await overVllm({ isNew });
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      await server.kill();
      await server.start();
      await eventually("a second load", () => reloads(server).length === 2);
      await eventually("the weights to be there again", () => engine.capacity().models.length === 1);
    });
  }

  test("a server whose engine is in a long step keeps its weights", async () => {
    await using subject = await engineOver(
      new FakeVllmServer({ ...shared, scoring: "processed" }),
      (url) => new VllmServer({ url, identifyDeadlineMs: 50 }),
    );
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    const looks = () => server.calls.filter(({ path }) => path === "GET /weight_info").length;
    const before = looks();
    server.isEngineBusy = true;
    await eventually("many looks at a server that is silent", () => looks() > before + 6);
    assert.equal(engine.state.kind, "ready");
    server.isEngineBusy = false;
    const result = await engine.generate(ask());
    assert.deepEqual(result.versions, [{ version: 1, tokenCount: 20 }]);
    assert.deepEqual(reloads(server), [first.folder]);
  });

  test("a load waits for a server that starts slowly", async () => {
    const server = new FakeVllmServer({ ...shared, scoring: "processed" });
    for (let i = 0; i < 3; i++) server.fail("GET /health", 503, {});
    await using subject = await engineOver(server, (url) => new VllmServer({ url }));
    const { engine } = subject;
    assert.equal(engine.state.kind, "away");
    await engine.loadPolicy(first);
    assert.equal((await engine.generate(ask())).tokenIds.length, 20);
    const hurried = await engineOver(
      new FakeVllmServer({ ...shared, scoring: "processed" }),
      (url) => new VllmServer({ url }),
      {
        readyWaitMs: 1,
        lookEveryMs: 10_000,
      },
    );
    await hurried.test.kill();
    await assert.rejects(hurried.engine.loadPolicy(first), PolicyLoadError);
    await hurried[Symbol.asyncDispose]();
  });

  test("a server without the routes that change weights is refused with the missing route", async () => {
    await using subject = await overVllm({ isDevelopment: false });
    const { engine } = subject;
    await eventually("the reason", () => {
      const { state } = engine;
      return state.kind === "away" && /VLLM_SERVER_DEV_MODE=1/.test(state.reason);
    });
  });

  test("after a load that fails at the server, the server gets the old weights again", async () => {
    await using subject = await overVllm();
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    server.fail("POST /collective_rpc", 500, { error: { message: "out of memory" } });
    await assert.rejects(
      engine.loadPolicy(second),
      (error) => error instanceof PolicyLoadError && /out of memory/.test(String(error.cause)),
    );
    assert.deepEqual(reloads(server), [first.folder, second.folder, first.folder]);
    assert.deepEqual((await engine.generate(ask())).versions, [{ version: 1, tokenCount: 20 }]);
    await engine.loadPolicy(second);
    assert.deepEqual((await engine.generate(ask())).versions, [{ version: 2, tokenCount: 20 }]);
  });

  test("a request that the server refuses is invalid, and one that fails there can be tried again", async () => {
    await using subject = await overVllm();
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    server.fail("POST /v1/completions", 400, { error: { message: "no", code: 400 } });
    await assert.rejects(engine.generate(ask()), InvalidRequestError);
    server.fail("POST /v1/completions", 500, { error: { message: "broken", code: 500 } });
    await assert.rejects(engine.generate(ask()), EngineFailedError);
    server.fail("POST /v1/completions", 200, { choices: "nonsense" });
    await assert.rejects(engine.generate(ask()), EngineFailedError);
    server.beforeToken = ({ ids }) => {
      if (ids.length === 3) throw new Error("the engine core is dead");
    };
    await assert.rejects(engine.generate(ask()), EngineFailedError);
    server.beforeToken = () => undefined;
    await eventually("its weights", () => engine.capacity().models.length === 1);
    assert.equal((await engine.generate(ask())).tokenIds.length, 20);
  });

  test("a generation at a server that hangs ends by its deadline", async () => {
    for (const over of [overVllm, overSglang]) {
      await using subject = await over();
      const { engine, test: server } = subject;
      await engine.loadPolicy(first);
      const never = Promise.withResolvers<void>();
      server.beforeToken = ({ ids }) => (ids.length === 4 ? never.promise : undefined);
      const result = await engine.generate(ask({ deadlineMs: 300 }), { onTokens: () => undefined });
      assert.equal(result.finishReason, FinishReason.deadline);
      assert.equal(result.tokenIds.length, 4);
      never.resolve();
    }
  });

  test("the server's own stop token is part of the sample", async () => {
    await using subject = await overVllm({ eosTokenIds: Array.from({ length: 25 }, (_, id) => id) });
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    const result = await engine.generate(ask());
    assert.equal(result.tokenIds.length, 20);
    assert.equal(result.finishReason, FinishReason.length);
    assert.ok(server.calls.filter(({ path }) => path === "POST /v1/completions").length > 5);
  });

  test("SGLang: a call without streaming is aborted by its id, and answers with its tokens so far", async () => {
    await using subject = await overSglang({ apiKey: "plain", adminKey: "admin" });
    const { engine, test: server } = subject;
    await engine.loadPolicy(first);
    const request = ask({ sampling: { ...ask().sampling, maxNewTokens: 400 } });
    server.beforeToken = ({ ids }) => {
      if (ids.length === 9) engine.abort(request.id);
    };
    const result = await engine.generate(request);
    assert.equal(result.finishReason, FinishReason.aborted);
    assert.ok(result.tokenIds.length >= 9 && result.tokenIds.length < 400);
    const keyOf = (route: string) => server.calls.find(({ path }) => path === `POST ${route}`)?.authorization;
    assert.equal(keyOf("/generate"), "Bearer plain");
    assert.equal(keyOf("/update_weights_from_disk"), "Bearer admin");
    assert.equal(keyOf("/abort_request"), "Bearer admin");
  });

  test("every sampling parameter is sent", async () => {
    const sampling = { ...ask().sampling, minP: 0, repetitionPenalty: 1, temperature: 0.5 };
    {
      await using subject = await overVllm();
      await subject.engine.loadPolicy(first);
      await subject.engine.generate(ask({ sampling: { ...sampling, topP: 0.9, topK: 7, minP: 0.1 } }));
      const { body } = subject.test.calls.findLast(({ path }) => path === "POST /v1/completions")!;
      const { temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty, frequency_penalty } =
        body;
      assert.deepEqual([temperature, top_p, top_k, min_p], [0.5, 0.9, 7, 0.1]);
      assert.deepEqual([repetition_penalty, presence_penalty, frequency_penalty], [1, 0, 0]);
      assert.deepEqual([body.n, body.seed, body.logprobs, body.max_tokens], [1, 5, 0, 20]);
    }
    await using subject = await overSglang();
    await subject.engine.loadPolicy(first);
    await subject.engine.generate(ask({ sampling }));
    const { body } = subject.test.calls.findLast(({ path }) => path === "POST /generate")!;
    const given = body.sampling_params as Record<string, unknown>;
    assert.deepEqual([given.temperature, given.top_p, given.top_k, given.min_p], [0.5, 1, -1, 0]);
    assert.deepEqual([given.repetition_penalty, given.presence_penalty, given.frequency_penalty], [1, 0, 0]);
    assert.deepEqual(
      [given.max_new_tokens, given.skip_special_tokens, body.return_logprob],
      [20, false, true],
    );
  });
});
