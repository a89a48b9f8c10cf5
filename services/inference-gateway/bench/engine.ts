/**
 * How fast the engine turns: 256 conversations in groups of eight, each waiting for its answer before its next turn,
 * on a model of the size of the FrozenLake example with fresh weights.
 *
 *   node services/inference-gateway/bench/engine.ts [--seconds 5] [--sessions 256] [--threads 1] [--spin] [--profile PREFIX]
 *
 * Runs the core on this thread, without the worker's messages, so that a step's cost is the engine's own.
 */

import { parseArgs } from "node:util";
import { Random } from "@hone/core";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { EngineCore } from "../src/domain/embedded/engine-core.ts";
import { OnnxRunner } from "../src/domain/embedded/onnx-runner.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    sessions: { type: "string", default: "256" },
    threads: { type: "string", default: "1" },
    turns: { type: "string", default: "10" },
    observation: { type: "string", default: "20" },
    layers: { type: "string", default: "4" },
    perRun: { type: "string", default: "500" },
    perContextRow: { type: "string", default: "0.02" },
    perAttention: { type: "string", default: "0.01" },
    spin: { type: "boolean", default: false },
  },
});

const GROUP_SIZE = 8;
const PROMPT_TOKENS = 45;
const NEW_TOKENS = 4;
const sessions = Number(values.sessions);
const spec = resolveModelSpec({
  vocabSize: 64,
  hiddenSize: 64,
  numLayers: Number(values.layers),
  numHeads: 4,
  numKeyValueHeads: 2,
  maxPositions: 1024,
});
const started = performance.now();
const runner = await OnnxRunner.create(spec, initialiseWeights(spec, 1), {
  maxCacheBytes: 256 * 2 ** 20,
  intraOpThreads: Number(values.threads),
  isSpinning: values.spin,
});
console.log(`session ready in ${(performance.now() - started).toFixed(0)} ms`);

let runs = 0;
let runMs = 0;
let computed = 0;
const measured = {
  limits: runner.limits,
  pageCapacity: runner.pageCapacity,
  copyRows: (from: number, to: number, count: number) => runner.copyRows(from, to, count),
  dispose: () => runner.dispose(),
  run: async (items: Parameters<OnnxRunner["run"]>[0]) => {
    const begin = performance.now();
    const output = await runner.run(items);
    runMs += performance.now() - begin;
    runs++;
    for (const item of items) computed += item.count;
    return output;
  },
};
const core = new EngineCore({
  maxSequences: 256,
  maxWaiting: 4096,
  maxStepTokens: 4096,
  runCost: {
    perRun: Number(values.perRun),
    perContextRow: Number(values.perContextRow),
    perAttention: Number(values.perAttention),
  },
  now: () => performance.now(),
});
const installed = core.install("m", 1, measured);
await core.step();
await installed;

const random = new Random(1);
const randomTokens = (count: number) => Array.from({ length: count }, () => random.nextInt(64));
let group = 0;
let context: number[][] = [];
const turnOf: number[] = new Array(sessions).fill(0);
let prompt: number[] = [];

function begin(session: number): void {
  if (group++ % GROUP_SIZE === 0) prompt = randomTokens(PROMPT_TOKENS);
  context[session] = prompt;
  turnOf[session] = 0;
}

function ask(session: number): void {
  core.submit(
    {
      id: String(session),
      model: "m",
      promptIds: context[session]!,
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: NEW_TOKENS, stopTokenIds: [] },
      seed: session,
      sessionId: "",
      groupId: "",
      versionRange: { lowest: 1, highest: 1 },
      deadlineMs: 60_000,
    },
    false,
  );
}

context = Array.from({ length: sessions }, () => []);
for (let session = 0; session < sessions; session++) {
  begin(session);
  ask(session);
}
let turns = 0;
let steps = 0;
let begun = performance.now();
let cpu = process.cpuUsage();
let isWarm = false;
for (;;) {
  await core.step();
  steps++;
  for (const event of core.takeEvents()) {
    if (event.kind !== "done") throw new Error(JSON.stringify(event));
    turns++;
    const session = Number(event.id);
    if (++turnOf[session]! >= Number(values.turns)) begin(session);
    else
      context[session] = [
        ...context[session]!,
        ...event.result.ids,
        ...randomTokens(Number(values.observation)),
      ];
    ask(session);
  }
  const elapsed = performance.now() - begun;
  if (!isWarm && elapsed > 1_000) {
    isWarm = true;
    turns = steps = runs = runMs = computed = 0;
    begun = performance.now();
    cpu = process.cpuUsage();
  } else if (isWarm && elapsed > Number(values.seconds) * 1_000) break;
}
const seconds = (performance.now() - begun) / 1_000;
const { user, system } = process.cpuUsage(cpu);
console.log(
  [
    `${(turns / seconds).toFixed(0)} turns/s`,
    `${((turns * NEW_TOKENS) / seconds).toFixed(0)} new tokens/s`,
    `${(computed / seconds).toFixed(0)} tokens/s computed`,
    `${(runs / seconds).toFixed(1)} runs/s of ${((runMs * 1_000) / runs).toFixed(0)} us`,
    `${((seconds * 1e6) / steps).toFixed(0)} us a step`,
    `${((100 * runMs) / 1_000 / seconds).toFixed(0)}% in runs`,
    `${((user + system) / 1e6 / seconds).toFixed(2)} cores`,
  ].join(", "),
);
await runner.dispose();
