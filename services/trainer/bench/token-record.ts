/**
 * What the record of trained tokens costs: the updates of one step with and without it, on the embedded engine.
 *
 *   node services/trainer/bench/token-record.ts [--rounds 5] [--rollouts 256] [--tokens 64]
 *
 * The model has the shape of the first example. Both kinds of step begin with the same weights, run in turn and must end with the
 * same weights, bit for bit; medians are printed. The record is made on the service's thread while the engine waits: `addedCpuMs` is
 * the time of the processor that it takes there, which a busy machine does not change. What it adds to a commit, its bytes, is
 * printed as well.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { toBinary } from "@bufbuild/protobuf";
import { resolveRunConfig } from "@hone/config";
import { Outcome, Random } from "@hone/core";
import { resolveModelSpec } from "@hone/nn";
import { TokenRecordSchema } from "@hone/proto-gen/ledger";
import { assignCredit, MetricSet, type Rollout } from "@hone/rl";
import { encodeTokens } from "../src/db/token-codec.ts";
import { TokenRecorder } from "../src/domain/record/token-recorder.ts";
import { optimise } from "../src/domain/step/optimise.ts";
import { planTraining } from "../src/domain/step/training-plan.ts";
import { OnnxTrainingEngine } from "../src/engine/onnx-training-engine.ts";

const VOCABULARY = 64;
const GROUP = 8;
const PROMPT = 30;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    rollouts: { type: "string", default: "256" },
    tokens: { type: "string", default: "64" },
  },
});
const [rounds, rolloutCount, tokenCount] = [values.rounds, values.rollouts, values.tokens].map(Number) as [
  number,
  number,
  number,
];
const config = resolveRunConfig({
  name: "bench",
  seed: 7,
  model: { init: { architecture: "qwen3", hiddenSize: 64, numLayers: 4, numHeads: 4, tokenizer: "t" } },
  dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } } },
  agent: { name: "a" },
  rollout: { tasksPerStep: rolloutCount / GROUP, groupSize: GROUP },
  trainer: { steps: 3, epochs: 2, minibatches: 4, optimizer: { kind: "adamw", learningRate: 1e-4 } },
});
const random = new Random(1);
const groups = Array.from({ length: rolloutCount / GROUP }, (_, task) => ({
  task,
  rollouts: Array.from({ length: GROUP }, (_, index) => rollout(task, index)),
}));
const credit = assignCredit(groups, config.algorithm);

const trainer = new OnnxTrainingEngine({
  spec: resolveModelSpec({
    vocabSize: VOCABULARY,
    hiddenSize: 64,
    numLayers: 4,
    numHeads: 4,
    numKeyValueHeads: 2,
    headDim: 16,
    intermediateSize: 192,
  }),
  companions: {},
  start: { kind: "fresh", seed: 3 },
});
const folder = await mkdtemp(path.join(tmpdir(), "token-record-"));
try {
  await trainer.initialise();
  await trainer.save(folder);
  const times: Record<string, number[]> = { without: [], with: [], cpuWithout: [], cpuWith: [] };
  const digests = new Set<string>();
  let bytes = 0;
  for (let round = -1; round < rounds; round++) {
    for (const kind of ["without", "with"] as const) {
      await trainer.load(folder);
      const recorder = kind === "with" ? new TokenRecorder(config) : undefined;
      const plan = planTraining(credit, config);
      const cpu = process.threadCpuUsage();
      const began = performance.now();
      await optimise({ engine: trainer, config, recorder }, 1, plan, new MetricSet(), () => undefined);
      const records = recorder
        ?.finish()
        .rollouts.map((tokens) =>
          toBinary(TokenRecordSchema, encodeTokens(tokens, { version: 1, policy: undefined })),
        );
      const ended = performance.now();
      const { user, system } = process.threadCpuUsage(cpu);
      bytes = records?.reduce((sum, { length }) => sum + length, 0) ?? bytes;
      digests.add((await trainer.saveWeights(path.join(folder, "after"))).digest);
      if (round < 0) continue;
      times[kind]!.push(ended - began);
      times[kind === "with" ? "cpuWith" : "cpuWithout"]!.push((user + system) / 1_000);
    }
  }
  const [without, withRecord, cpuWithout, cpuWith] = ["without", "with", "cpuWithout", "cpuWith"].map(
    (name) => median(times[name]!),
  ) as [number, number, number, number];
  console.log(
    JSON.stringify({
      rollouts: rolloutCount,
      tokens: rolloutCount * tokenCount,
      withoutMs: without,
      withMs: withRecord,
      ratio: withRecord / without,
      addedCpuMs: cpuWith - cpuWithout,
      ratioByCpu: 1 + (cpuWith - cpuWithout) / without,
      recordBytes: bytes,
      hasSameWeights: digests.size === 1,
    }),
  );
} finally {
  await trainer.close();
  await rm(folder, { recursive: true, force: true });
}

function rollout(task: number, index: number): Rollout {
  const length = PROMPT + tokenCount;
  return {
    slot: { split: "train", step: 1, task, index },
    attempt: 1,
    outcome: Outcome.completed,
    scores: [{ judge: "environment", weight: 1, value: random.next() }],
    samples: [
      {
        tokenIds: Uint32Array.from({ length }, (_, at) =>
          at < PROMPT ? task % VOCABULARY : random.nextInt(VOCABULARY),
        ),
        lossMask: Uint8Array.from({ length }, (_, at) => (at < PROMPT ? 0 : 1)),
        logprobs: Array.from({ length: tokenCount }, () => -4 - random.next() / 2),
        versions: [{ version: 0, tokenCount }],
      },
    ],
    metrics: {},
    turnCount: 1,
  };
}

function median(all: readonly number[]): number {
  return [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)]!;
}
