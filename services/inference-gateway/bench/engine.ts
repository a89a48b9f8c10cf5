/**
 * Measures the turns per second of the engine: conversations in groups that share a prompt, each waiting for its answer before its next
 * turn, on new weights. A round repeats the same conversations, from the first turn to the last answer.
 *
 *   node services/inference-gateway/bench/engine.ts [--shape example|135m] [--rounds 3] [--sessions 256] [--turns 10]
 *        [--group 8] [--prompt 45] [--new 4] [--observation 20] [--threads 1] [--spinUs 0] [--worker] [--json]
 *        [--contexts pooled|slots] [--weights left|right]
 *
 * Without --worker the core runs on this thread, and only its steps are measured; with it, it runs behind the port as in
 * the service, with the messages. On a busy machine compare turns per core second. With --json it
 * prints `ready`, then answers each line of its input with a round as one line of JSON.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { saveCheckpoint } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import type { EngineGeneration, GenerateRequest } from "../src/domain/inference-engine.ts";
import { EmbeddedEngine, RUN_COST } from "../src/embedded/embedded-engine.ts";
import { EngineCore } from "../src/embedded/engine-core.ts";
import { OnnxRunner } from "../src/embedded/onnx/onnx-runner.ts";
import { SHAPES } from "./shapes.ts";

const { values } = parseArgs({
  options: {
    shape: { type: "string", default: "example" },
    rounds: { type: "string", default: "3" },
    sessions: { type: "string", default: "256" },
    turns: { type: "string", default: "10" },
    group: { type: "string", default: "8" },
    prompt: { type: "string", default: "45" },
    new: { type: "string", default: "4" },
    observation: { type: "string", default: "20" },
    threads: { type: "string", default: "1" },
    maxContextRows: { type: "string", default: String(RUN_COST.maxContextRows) },
    spinUs: { type: "string", default: "0" },
    contexts: { type: "string" },
    weights: { type: "string", default: "left" },
    worker: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const CACHE_BYTES = 2 ** 30;
const CALL_DEADLINE_MS = 300_000;
const newTokens = Number(values.new);
const spec = resolveModelSpec(SHAPES[values.shape === "135m" ? "135m" : "example"]);
const weights = initialiseWeights(spec, 1);

interface Subject {
  generate(request: GenerateRequest): Promise<EngineGeneration>;
  /** Number of runs, their time, and steps since the last call, if they can be measured. */
  figures(): string[];
  stop(): Promise<void>;
}

const random = new Random(1);
const randomTokens = (count: number) => Array.from({ length: count }, () => random.nextInt(spec.vocabSize));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let isOver = false;
let calls = 0;
const subject = values.worker ? await startEngine() : await startCore();

interface Round {
  readonly turns: number;
  readonly newTokens: number;
  readonly seconds: number;
  readonly coreSeconds: number;
}

async function runRound(): Promise<Round> {
  const begun = performance.now();
  const before = process.cpuUsage();
  let prompt: number[] = [];
  const conversations = Array.from({ length: Number(values.sessions) }, (_, index) => {
    if (index % Number(values.group) === 0) prompt = randomTokens(Number(values.prompt));
    return converse(prompt);
  });
  const counts = await Promise.all(conversations);
  const { user, system } = process.cpuUsage(before);
  return {
    turns: Number(values.sessions) * Number(values.turns),
    newTokens: counts.reduce((sum, count) => sum + count, 0),
    seconds: (performance.now() - begun) / 1_000,
    coreSeconds: (user + system) / 1e6,
  };
}

/** @returns the number of sampled tokens. */
async function converse(prompt: readonly number[]): Promise<number> {
  let context = [...prompt];
  let sampled = 0;
  for (let turn = 0; turn < Number(values.turns); turn++) {
    const { tokenIds } = await subject.generate({
      id: String(calls++),
      model: "m",
      promptIds: context,
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: newTokens, stopTokenIds: [] },
      seed: calls,
      sessionId: "",
      groupId: "",
      versionRange: { lowest: 1, highest: 1 },
      deadlineMs: CALL_DEADLINE_MS,
    });
    sampled += tokenIds.length;
    context = [...context, ...tokenIds, ...randomTokens(Number(values.observation))];
  }
  return sampled;
}

if (values.json) {
  console.log("ready");
  for await (const _ of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await runRound()));
  }
} else {
  await runRound();
  subject.figures();
  for (let round = 0; round < Number(values.rounds); round++) {
    const { turns, newTokens: sampled, seconds, coreSeconds } = await runRound();
    console.log(
      [
        `${(turns / seconds).toFixed(0)} turns/s`,
        `${(sampled / seconds).toFixed(0)} new tokens/s`,
        ...subject.figures(),
        `${(coreSeconds / seconds).toFixed(2)} cores`,
        `${(turns / coreSeconds).toFixed(0)} turns per core second`,
      ].join(", "),
    );
  }
}
isOver = true;
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
    spinUs: Number(values.spinUs),
    ...((values.contexts === "pooled" || values.contexts === "slots") && { contextLayout: values.contexts }),
    isWeightLeft: values.weights === "left",
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
    copyPages: (source, from, to) => runner.copyPages(source, from, to),
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
  const pending = new Map<string, (result: EngineGeneration) => void>();
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
