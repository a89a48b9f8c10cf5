import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { CONTEXT_BUCKET } from "@hone/nn";
import { FinishReason } from "@hone/rl";
import { EngineBusyError, EngineFailedError } from "../domain/errors.ts";
import { RUN_COST } from "./embedded-engine.ts";
import type { EngineEvent } from "./messages.ts";
import type { RunItem } from "./policy-runner.ts";
import { HashRunner } from "./testing/hash-runner.ts";
import { alone, coreWith, finish, request, sampleOf } from "./testing/run-core.ts";

describe("EngineCore", () => {
  test("splits a long prompt, so that sequences that decode do not wait longer than a step may take", async () => {
    let clock = 0;
    const beforeRun = (items: readonly RunItem[]) => {
      clock += 10 * items.reduce((sum, { count }) => sum + count, 0);
    };
    const { core, runner } = await coreWith(
      { beforeRun },
      { maxStepTokens: 4_096, maxStepMs: 1_000, now: () => clock },
    );
    const first = request({ promptIds: new Array<number>(40).fill(1), maxNewTokens: 50, deadlineMs: 1e9 });
    core.submit({ ...first, sampling: { ...first.sampling, stopTokenIds: [] } }, false);
    await core.step();
    runner.runs.length = 0;
    core.submit(request({ promptIds: new Array<number>(240).fill(2), deadlineMs: 1e9 }), false);
    for (let step = 0; step < 3; step++) await core.step();
    const prefills = runner.runs.filter(({ tokens }) => tokens > 1).map(({ tokens }) => tokens);
    assert.deepEqual(prefills, [100, 100, 40]);
    assert.equal(runner.runs.length, 6, "each step has a decoding run too");
  });

  test("gives every sequence the same tokens as alone, while others join and leave, and with chunks, sharing and eviction", async () => {
    const random = new Random(3);
    const { core, runner } = await coreWith({ pageCapacity: 20 }, { maxStepTokens: 13, maxSequences: 6 });
    const requests = Array.from({ length: 60 }, (_, i) =>
      request({
        promptIds: Array.from({ length: 1 + random.nextInt(30) }, (_, at) =>
          at < 20 ? 1 : random.nextInt(3),
        ),
        seed: random.nextInt(1000),
        maxNewTokens: 1 + (i % 9),
      }),
    );
    const events: EngineEvent[] = [];
    for (const work of requests) {
      core.submit(work, false);
      if (random.next() < 0.7) await core.step();
      events.push(...core.takeEvents());
    }
    const { results } = await finish(core, events);
    for (const work of requests)
      assert.deepEqual(sampleOf(results.get(work.id)), sampleOf(await alone(work)));
    assert.ok(runner.runs.some((run) => run.sequences > 1));
  });

  test("lets one run decode for a turn where not all sequences fit in a run, and gives the same tokens", async () => {
    const runCost = { ...RUN_COST, maxContextRows: 3 * CONTEXT_BUCKET, turnSteps: 4 };
    const { core, runner } = await coreWith({}, { runCost });
    const requests = Array.from({ length: 8 }, (_, i) =>
      request({
        promptIds: [i + 1, i + 2],
        seed: i,
        sampling: { ...request().sampling, maxNewTokens: 20, stopTokenIds: [] },
      }),
    );
    for (const work of requests) core.submit(work, false);
    const { results } = await finish(core);
    for (const work of requests)
      assert.deepEqual(sampleOf(results.get(work.id)), sampleOf(await alone(work)));
    const decoding = runner.runs.filter(({ tokens, sequences }) => tokens === sequences);
    assert.ok(decoding.every(({ sequences }) => sequences <= 3));
    // Each of the 8 sequences decodes 19 tokens.
    assert.ok(decoding.length >= Math.ceil((8 * 19) / 3) && decoding.length < 65, `${decoding.length} runs`);
  });

  test("starts the youngest sequence over when rows run out, with another page table, and gives the same tokens", async () => {
    const lastOf = new Map<Int32Array, RunItem>();
    let restarts = 0;
    const beforeRun = (items: readonly RunItem[]) => {
      for (const item of items) {
        const last = lastOf.get(item.tokenIds);
        lastOf.set(item.tokenIds, item);
        if (last === undefined) continue;
        const isRestarted = item.start < last.start;
        if (isRestarted) restarts++;
        assert.equal(item.pages !== last.pages, isRestarted);
      }
    };
    const { core, runner } = await coreWith({ pageCapacity: 9, beforeRun });
    const requests = Array.from({ length: 8 }, (_, i) =>
      request({
        promptIds: [i + 1, i + 2],
        seed: i,
        maxNewTokens: 40,
        sampling: { ...request().sampling, maxNewTokens: 40, stopTokenIds: [] },
      }),
    );
    for (const work of requests) core.submit(work, false);
    const { results } = await finish(core);
    for (const work of requests)
      assert.deepEqual(sampleOf(results.get(work.id)), sampleOf(await alone(work)));
    const computed = runner.runs.reduce((sum, run) => sum + run.tokens, 0);
    assert.ok(computed > 8 * 41, `computed ${computed}`);
    assert.ok(restarts > 0, "no sequence started over");
  });

  test("computes the prompt of a group once, also when the whole group arrives at once", async () => {
    const { core, runner } = await coreWith();
    const promptIds = Array.from({ length: 40 }, (_, i) => i % 7);
    for (let i = 0; i < 8; i++) core.submit(request({ promptIds, seed: i, maxNewTokens: 1 }), false);
    const { results } = await finish(core);
    assert.equal(
      runner.runs.reduce((sum, run) => sum + run.tokens, 0),
      40 + 7,
    );
    assert.deepEqual(
      [...results.values()].map((result) => result.metrics.cachedTokens).sort(),
      [0, 39, 39, 39, 39, 39, 39, 39],
    );
  });

  test("continues a session from its cached K/V, with the same tokens as from the whole context", async () => {
    const { core, runner } = await coreWith();
    let context = [1, 2, 3, 4];
    for (let turn = 0; turn < 5; turn++) {
      const work = request({ promptIds: context, seed: turn });
      core.submit(work, false);
      const result = (await finish(core)).results.get(work.id)!;
      assert.deepEqual(sampleOf(result), sampleOf(await alone(work)));
      if (turn > 0) assert.ok(result.metrics.prefillTokens <= 4, `prefill ${result.metrics.prefillTokens}`);
      context = [...context, ...result.tokenIds, 5, 6, 7];
    }
    assert.ok(runner.runs.every((run) => run.sequences === 1));
  });

  test("ends a generation at the stop token, which it keeps, or at the limits of the request and the context", async () => {
    const { core } = await coreWith({ maxContextTokens: 10 });
    const stopping = request({ maxNewTokens: 100 });
    const every = Array.from({ length: 16 }, (_, id) => id);
    const atOnce = request({ sampling: { ...stopping.sampling, stopTokenIds: every } });
    const limited = request({ sampling: { ...stopping.sampling, maxNewTokens: 2, stopTokenIds: [] } });
    const full = request({ sampling: { ...stopping.sampling, maxNewTokens: 100, stopTokenIds: [] } });
    for (const work of [atOnce, limited, full]) core.submit(work, false);
    const { results } = await finish(core);
    assert.equal(results.get(atOnce.id)!.tokenIds.length, 1);
    assert.equal(results.get(atOnce.id)!.finishReason, FinishReason.stop);
    assert.equal(results.get(limited.id)!.tokenIds.length, 2);
    assert.equal(results.get(limited.id)!.finishReason, FinishReason.length);
    assert.equal(results.get(full.id)!.tokenIds.length, 7);
    assert.equal(results.get(full.id)!.finishReason, FinishReason.length);
  });

  test("refuses requests beyond its queue, and prompts that its model cannot take", async () => {
    const { core } = await coreWith({ pageCapacity: 3 }, { maxWaiting: 2 });
    core.submit(request({ id: "empty", promptIds: [] }), false);
    core.submit(request({ id: "stranger", promptIds: [16] }), false);
    core.submit(request({ id: "long", promptIds: new Array(256).fill(1) }), false);
    core.submit(request({ id: "large", maxNewTokens: 38 }), false);
    const codes = core
      .takeEvents()
      .map((e) => (e.kind === "failed" ? (e.error as { code?: string }).code : e.kind));
    assert.deepEqual(codes, ["INVALID_INPUT", "INVALID_INPUT", "INVALID_INPUT", "INVALID_INPUT"]);
    for (const id of ["a", "b", "c"]) core.submit(request({ id }), false);
    const refused = core.takeEvents();
    assert.equal(refused.length, 1);
    assert.ok(refused[0]!.kind === "failed" && refused[0]!.error instanceof EngineBusyError);
    assert.equal((await finish(core)).results.size, 2);
  });

  test("ends aborted and late sequences with their tokens so far, and loses no row", async () => {
    let now = 0;
    const { core } = await coreWith({ pageCapacity: 6 }, { now: () => now });
    const sampling = { ...request().sampling, maxNewTokens: 20, stopTokenIds: [] };
    for (let round = 0; round < 10; round++) {
      const aborted = request({ sampling, promptIds: [round, 1] });
      const late = request({ sampling, promptIds: [round, 2], deadlineMs: 5 });
      core.submit(aborted, false);
      core.submit(late, false);
      await core.step();
      await core.step();
      core.abort(aborted.id);
      now += 5;
      const { results } = await finish(core);
      assert.equal(results.get(aborted.id)!.finishReason, FinishReason.aborted);
      assert.equal(results.get(aborted.id)!.tokenIds.length, 2);
      assert.equal(results.get(late.id)!.finishReason, FinishReason.deadline);
    }
  });

  test("streams chunks that add up to the result, but only if the caller asks for them", async () => {
    const { core } = await coreWith();
    const sampling = { ...request().sampling, stopTokenIds: [] };
    const [streaming, plain] = [request({ sampling }), request({ sampling })];
    core.submit(streaming, true);
    core.submit(plain, false);
    const { results, events } = await finish(core);
    const chunks = events.filter((event) => event.kind === "tokens");
    assert.ok(chunks.every((chunk) => chunk.id === streaming.id));
    assert.ok(chunks.length > 1);
    assert.deepEqual(
      chunks.flatMap((chunk) => chunk.tokenIds),
      results.get(streaming.id)!.tokenIds,
    );
    assert.deepEqual(
      chunks.flatMap((chunk) => chunk.logprobs),
      results.get(streaming.id)!.logprobs,
    );
  });

  test("fails the running sequences when a run fails, and serves those that come later", async () => {
    let isBroken = true;
    const { core } = await coreWith({
      pageCapacity: 3,
      beforeRun: () => {
        if (isBroken) throw new Error("out of memory");
      },
    });
    core.submit(request({ id: "hit" }), false);
    const { events } = await finish(core);
    assert.ok(events[0]!.kind === "failed" && events[0]!.error instanceof EngineFailedError);
    isBroken = false;
    const next = request({ maxNewTokens: 16 });
    core.submit(next, false);
    assert.deepEqual(sampleOf((await finish(core)).results.get(next.id)), sampleOf(await alone(next)));
  });

  test("unload() ends the generations of that model only", async () => {
    const { core } = await coreWith();
    const installed = core.install("n", 4, new HashRunner());
    const [gone, stays] = [request(), request({ model: "n" })];
    core.submit(gone, false);
    await core.step();
    await installed;
    core.submit(stays, false);
    const unloaded = core.unload("m");
    const { results } = await finish(core);
    await unloaded;
    assert.equal(results.get(gone.id)!.finishReason, FinishReason.aborted);
    assert.notEqual(results.get(stays.id)!.finishReason, FinishReason.aborted);
    assert.deepEqual(
      core.models().map((loaded) => loaded.model),
      ["n"],
    );
  });
});
