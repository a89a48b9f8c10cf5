/**
 * How fast the engine turns: 256 conversations in groups of eight, each waiting for its answer before its next turn,
 * on a model of the size of the FrozenLake example with fresh weights.
 *
 *   node services/inference-gateway/bench/engine.ts [--seconds 5] [--sessions 256] [--threads 1] [--spin] [--worker]
 *
 * Without --worker the core runs on this thread and a step's cost is its own; with it, it runs behind the port as in
 * the service, messages included. The figure to compare on a busy machine is turns per core second.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { Random } from "@hone/core";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { saveCheckpoint } from "@hone/train";
import { EmbeddedEngine, RUN_COST } from "../src/domain/embedded/embedded-engine.ts";
import { EngineCore } from "../src/domain/embedded/engine-core.ts";
import { OnnxRunner } from "../src/domain/embedded/onnx-runner.ts";
import type { GenerateRequest, GenerateResult } from "../src/domain/inference-engine.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    sessions: { type: "string", default: "256" },
    threads: { type: "string", default: "1" },
    turns: { type: "string", default: "10" },
    observation: { type: "string", default: "20" },
    layers: { type: "string", default: "4" },
    kvHeads: { type: "string", default: "2" },
    maxContextRows: { type: "string", default: String(RUN_COST.maxContextRows) },
    spin: { type: "boolean", default: false },
    worker: { type: "boolean", default: false },
  },
});

const GROUP_SIZE = 8;
const PROMPT_TOKENS = 45;
const NEW_TOKENS = 4;
const WARM_UP_MS = 1_000;
const CACHE_BYTES = 256 * 2 ** 20;
const sessions = Number(values.sessions);
const spec = resolveModelSpec({
  vocabSize: 64,
  hiddenSize: 64,
  numLayers: Number(values.layers),
  numHeads: 4,
  numKeyValueHeads: Number(values.kvHeads),
  maxPositions: 1024,
});
const weights = initialiseWeights(spec, 1);

interface Subject {
  generate(request: GenerateRequest): Promise<GenerateResult>;
  /** Runs, time in them and steps since the last call, where they can be seen. */
  figures(): string[];
  stop(): Promise<void>;
}

const random = new Random(1);
const randomTokens = (count: number) => Array.from({ length: count }, () => random.nextInt(64));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let isOver = false;
let turns = 0;
let calls = 0;
let group = 0;
let prompt: number[] = [];
const subject = values.worker ? await startEngine() : await startCore();

async function converse(): Promise<void> {
  while (!isOver) {
    if (group++ % GROUP_SIZE === 0) prompt = randomTokens(PROMPT_TOKENS);
    let context = prompt;
    for (let turn = 0; turn < Number(values.turns) && !isOver; turn++) {
      const result = await subject.generate({
        id: String(calls++),
        model: "m",
        promptIds: context,
        sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: NEW_TOKENS, stopTokenIds: [] },
        seed: calls,
        sessionId: "",
        groupId: "",
        versionRange: { lowest: 1, highest: 1 },
        deadlineMs: 60_000,
      });
      context = [...context, ...result.ids, ...randomTokens(Number(values.observation))];
      turns++;
    }
  }
}

const conversations = Array.from({ length: sessions }, converse);
await pause(WARM_UP_MS);
turns = 0;
subject.figures();
const begun = performance.now();
const before = process.cpuUsage();
await pause(Number(values.seconds) * 1_000);
const seconds = (performance.now() - begun) / 1_000;
const { user, system } = process.cpuUsage(before);
const coreSeconds = (user + system) / 1e6;
console.log(
  [
    `${(turns / seconds).toFixed(0)} turns/s`,
    `${((turns * NEW_TOKENS) / seconds).toFixed(0)} new tokens/s`,
    ...subject.figures(),
    `${(coreSeconds / seconds).toFixed(2)} cores`,
    `${(turns / coreSeconds).toFixed(0)} turns per core second`,
  ].join(", "),
);
isOver = true;
await Promise.all(conversations);
await subject.stop();

async function startEngine(): Promise<Subject> {
  const folder = await mkdtemp(path.join(tmpdir(), "hone-bench-"));
  const { digest } = await saveCheckpoint(folder, { spec, weights, companions: {} });
  const engine = new EmbeddedEngine({ maxCacheBytes: CACHE_BYTES, intraOpThreads: Number(values.threads) });
  await engine.loadPolicy({ model: "m", version: 1, folder, digest });
  return {
    generate: (request) => engine.generate(request),
    figures: () => [],
    async stop() {
      await engine.close();
      await rm(folder, { recursive: true });
    },
  };
}

async function startCore(): Promise<Subject> {
  const runner = await OnnxRunner.create(spec, weights, {
    maxCacheBytes: CACHE_BYTES,
    maxSequences: 256,
    intraOpThreads: Number(values.threads),
    isSpinning: values.spin,
  });
  let runs = 0;
  let runMs = 0;
  let computed = 0;
  let steps = 0;
  let since = performance.now();
  const core = new EngineCore({
    maxSequences: 256,
    maxWaiting: 4096,
    maxStepTokens: 4096,
    runCost: { ...RUN_COST, maxContextRows: Number(values.maxContextRows) },
    now: () => performance.now(),
  });
  const installed = core.install("m", 1, {
    limits: runner.limits,
    pageCapacity: runner.pageCapacity,
    copyRows: (from, to, count) => runner.copyRows(from, to, count),
    dispose: () => runner.dispose(),
    async run(items) {
      const at = performance.now();
      const output = await runner.run(items);
      runMs += performance.now() - at;
      runs++;
      for (const item of items) computed += item.count;
      return output;
    },
  });
  await core.step();
  await installed;
  const pending = new Map<string, (result: GenerateResult) => void>();
  const driving = (async () => {
    while (!isOver || pending.size > 0) {
      await (core.hasWork ? core.step() : pause(0));
      steps++;
      for (const event of core.takeEvents()) {
        if (event.kind !== "done") throw new Error(JSON.stringify(event));
        pending.get(event.id)!(event.result);
        pending.delete(event.id);
      }
    }
  })();
  return {
    generate(request) {
      core.submit(request, false);
      return new Promise((resolve) => pending.set(request.id, resolve));
    },
    figures() {
      const elapsedMs = performance.now() - since;
      const shown = [
        `${((computed / elapsedMs) * 1_000).toFixed(0)} tokens/s computed`,
        `${((runs / elapsedMs) * 1_000).toFixed(1)} runs/s of ${((runMs * 1_000) / runs).toFixed(0)} us`,
        `${((elapsedMs * 1_000) / steps).toFixed(0)} us a step`,
        `${((100 * runMs) / elapsedMs).toFixed(0)}% in runs`,
      ];
      runs = runMs = computed = steps = 0;
      since = performance.now();
      return shown;
    },
    async stop() {
      await driving;
      await runner.dispose();
    },
  };
}
