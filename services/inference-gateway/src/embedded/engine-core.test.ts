import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { PAGE_ROWS } from "@hone/nn";
import { FinishReason } from "@hone/rl";
import {
  EngineBusyError,
  EngineFailedError,
  VersionBehindError,
  VersionStaleError,
} from "../domain/errors.ts";
import type { EngineGeneration, GenerateRequest } from "../domain/inference-engine.ts";
import { RUN_COST } from "./embedded-engine.ts";
import { EngineCore, type EngineCoreOptions } from "./engine-core.ts";
import type { EngineEvent } from "./messages.ts";
import type { RunItem } from "./policy-runner.ts";
import { HashRunner, type HashRunnerOptions } from "./testing.ts";

const options: EngineCoreOptions = {
  maxSequences: 32,
  maxWaiting: 100,
  maxStepTokens: 64,
  runCost: RUN_COST,
  now: () => performance.now(),
};

let made = 0;
function request(change: Partial<GenerateRequest> & { maxNewTokens?: number } = {}): GenerateRequest {
  const { maxNewTokens = 8, ...rest } = change;
  return {
    id: `call-${made++}`,
    model: "m",
    promptIds: [1, 2, 3],
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens, stopTokenIds: [0] },
    seed: 5,
    sessionId: "",
    groupId: "",
    versionRange: { lowest: 0, highest: 100 },
    deadlineMs: 60_000,
    ...rest,
  };
}

async function coreWith(runnerOptions: HashRunnerOptions = {}, changes: Partial<EngineCoreOptions> = {}) {
  const core = new EngineCore({ ...options, ...changes });
  const runner = new HashRunner(runnerOptions);
  const installed = core.install("m", 1, runner);
  await core.step();
  await installed;
  return { core, runner };
}

/** Runs steps until everything has ended, and collects the events. */
async function finish(core: EngineCore, events: EngineEvent[] = []) {
  while (core.hasWork) {
    await core.step();
    events.push(...core.takeEvents());
  }
  events.push(...core.takeEvents());
  const results = new Map<string, EngineGeneration>();
  for (const event of events) if (event.kind === "done") results.set(event.id, event.result);
  return { results, events };
}

async function alone(work: GenerateRequest): Promise<EngineGeneration> {
  const { core } = await coreWith();
  core.submit(work, false);
  return (await finish(core)).results.get(work.id)!;
}

function sampleOf(result: EngineGeneration | undefined) {
  return { ids: result?.tokenIds, logprobs: result?.logprobs, finishReason: result?.finishReason };
}

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

  test("starts the youngest sequence over when rows run out, and gives the same tokens", async () => {
    const { core, runner } = await coreWith({ pageCapacity: 9 });
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

  test("moves running sequences to a new version if their range allows, and labels each token with its version", async () => {
    const { core, runner } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const moving = request({ sampling });
    const pinned = request({ sampling, versionRange: { lowest: 1, highest: 1 } });
    core.submit(moving, false);
    core.submit(pinned, false);
    for (let i = 0; i < 3; i++) await core.step();
    const next = new HashRunner({ salt: 77 });
    const installed = core.install("m", 2, next);
    const { results } = await finish(core);
    await installed;
    const moved = results.get(moving.id)!;
    assert.deepEqual(moved.versions, [
      { version: 1, tokenCount: 3 },
      { version: 2, tokenCount: 3 },
    ]);
    assert.deepEqual(results.get(pinned.id)!.versions, [{ version: 1, tokenCount: 6 }]);
    assert.deepEqual(sampleOf(results.get(pinned.id)), sampleOf(await alone(pinned)));
    assert.ok(runner.isDisposed, "the old version is dropped once nothing needs it");
    // The new version alone gives the same last tokens for the same context, so no K/V of the old one was used.
    const tail = request({
      promptIds: [...moving.promptIds, ...moved.tokenIds.slice(0, 3)],
      sampling: { ...sampling, maxNewTokens: 3 },
    });
    core.submit(tail, false);
    assert.deepEqual((await finish(core)).results.get(tail.id)!.tokenIds, moved.tokenIds.slice(3));
  });

  test("a sequence that finishes stays on its version, and one that has no token yet begins on the new one", async () => {
    const { core } = await coreWith({}, { maxSequences: 1 });
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const staying = request({ sampling, onNewVersion: "finish" });
    const waiting = request({ sampling, onNewVersion: "finish" });
    core.submit(staying, false);
    core.submit(waiting, false);
    for (let i = 0; i < 3; i++) await core.step();
    const installed = core.install("m", 2, new HashRunner({ salt: 77 }));
    const { results } = await finish(core);
    await installed;
    assert.deepEqual(results.get(staying.id)!.versions, [{ version: 1, tokenCount: 6 }]);
    assert.deepEqual(sampleOf(results.get(staying.id)), sampleOf(await alone(staying)));
    assert.deepEqual(results.get(waiting.id)!.versions, [{ version: 2, tokenCount: 6 }]);
  });

  test("a sequence whose K/V is kept goes on without computing its context again, and no other one uses that K/V", async () => {
    const { core, runner } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const promptIds = Array.from({ length: 2 * PAGE_ROWS + 3 }, (_, i) => i % 16);
    const kept = request({ promptIds, sampling, onNewVersion: "keep" });
    core.submit(kept, false);
    for (let i = 0; i < 3; i++) await core.step();
    const next = new HashRunner({ salt: 77 });
    const installed = core.install("m", 2, next);
    const { results } = await finish(core);
    await installed;
    const moved = results.get(kept.id)!;
    assert.deepEqual(moved.versions, [
      { version: 1, tokenCount: 3 },
      { version: 2, tokenCount: 3 },
    ]);
    assert.deepEqual(
      next.runs.map(({ tokens }) => tokens),
      [1, 1, 1],
    );
    // A hash of the old state and the same tokens is that of the old version, whose salt is only in its first row.
    assert.deepEqual(sampleOf(moved), sampleOf(await alone(request({ ...kept, id: "alone" }))));
    assert.ok(runner.isDisposed);

    const tail = request({ promptIds: [...promptIds, ...moved.tokenIds.slice(0, 3)], sampling });
    core.submit(tail, false);
    const after = (await finish(core)).results.get(tail.id)!;
    assert.equal(after.metrics.cachedTokens, 0);
    assert.notDeepEqual(after.tokenIds.slice(0, 3), moved.tokenIds.slice(3));
  });

  test("a sequence whose K/V does not fit into the new version's memory is computed again", async () => {
    const { core } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 6, stopTokenIds: [] };
    const promptIds = Array.from({ length: 2 * PAGE_ROWS + 3 }, (_, i) => i % 16);
    const [first, second] = [1, 2].map(() => request({ promptIds, sampling, onNewVersion: "keep" }));
    for (const each of [first!, second!]) core.submit(each, false);
    for (let i = 0; i < 3; i++) await core.step();
    // Three pages for one sequence, one for what it still samples, and the page of zeros: too few for both.
    const installed = core.install("m", 2, new HashRunner({ salt: 77, pageCapacity: 6 }));
    const { results } = await finish(core);
    await installed;
    for (const { id } of [first!, second!]) {
      assert.equal(results.get(id)!.tokenIds.length, 6);
      assert.equal(results.get(id)!.finishReason, FinishReason.length);
    }
    assert.notDeepEqual(
      results.get(first!.id)!.tokenIds.slice(3),
      results.get(second!.id)!.tokenIds.slice(3),
    );
  });

  test("ends sequences that a new version makes too old, and moves the others", async () => {
    const { core } = await coreWith();
    const sampling = { ...request().sampling, maxNewTokens: 9, stopTokenIds: [] };
    const begun = request({ id: "begun", sampling, maxStaleness: 1 });
    // A later call of a rollout whose first token is of version 0.
    const bound = request({
      id: "bound",
      sampling,
      versionRange: { lowest: 0, highest: 1 },
      maxStaleness: 1,
    });
    const pinned = request({ id: "pinned", sampling, versionRange: { lowest: 1, highest: 1 } });
    for (const each of [begun, bound, pinned]) core.submit(each, false);
    const events: EngineEvent[] = [];
    const install = async (version: number) => {
      for (let i = 0; i < 2; i++) await core.step();
      const installed = core.install("m", version, new HashRunner({ salt: version }));
      await core.step();
      await installed;
      events.push(...core.takeEvents());
      return events.flatMap((event) =>
        event.kind === "failed" && event.error instanceof VersionStaleError ? [event.id] : [],
      );
    };
    assert.deepEqual(await install(2), ["bound"]);
    core.submit(request({ id: "fresh", sampling, maxStaleness: 1 }), false);
    assert.deepEqual(await install(3), ["bound", "begun"]);
    const { results } = await finish(core, events);
    assert.deepEqual([...results.keys()].sort(), ["fresh", "pinned"]);
    assert.deepEqual(
      results.get("fresh")!.versions.map(({ version }) => version),
      [2, 3],
    );
    assert.deepEqual(results.get("pinned")!.versions, [{ version: 1, tokenCount: 9 }]);
  });

  test("refuses versions that are not loaded, with an error that shows whether waiting can help", async () => {
    const { core } = await coreWith();
    core.submit(request({ id: "behind", versionRange: { lowest: 2, highest: 3 } }), false);
    core.submit(request({ id: "stale", versionRange: { lowest: 0, highest: 0 } }), false);
    core.submit(request({ id: "unknown", model: "other" }), false);
    const errors = new Map(
      (await finish(core)).events.map((e) => [e.id, e.kind === "failed" ? e.error : undefined]),
    );
    assert.ok(errors.get("behind") instanceof VersionBehindError);
    assert.ok(errors.get("stale") instanceof VersionStaleError);
    assert.ok(errors.get("unknown") instanceof VersionBehindError);
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
