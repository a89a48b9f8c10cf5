/**
 * `npm run simulate`: what a run does per second on a cluster of given size, synchronous and with rollouts of later steps, and
 * what spare groups and rollouts gain. A model, which says what is worth trying: docs/asynchrony.md compares it with measured runs.
 */

import { scriptArguments } from "@hone/core";
import { formatTable } from "./report/report.ts";
import { logNormal, sigmaOf, uniformTurns } from "./simulate/distributions.ts";
import { engineSpeed, GPUS, trainingMs } from "./simulate/hardware.ts";
import { type Cluster, type Schedule, simulate, type Workload } from "./simulate/pipeline.ts";

const { values } = scriptArguments(process, {
  usage: `npm run simulate -- [options]

Simulates the steps of a run on a cluster, and prints what synchronous and asynchronous schedules reach.

the cluster
  --gpus COUNT             of all engines and of training (default 8)
  --train-gpus COUNT       those that train (default half); 0 = all of them generate, then all of them train
  --gpus-per-replica COUNT (default 1)
  --gpu NAME               ${Object.keys(GPUS).join(", ")} (default h100)
  --publish-s SECONDS      how long a replica stands still for a new version (default 2)
the model and its rollouts
  --parameters COUNT       such as 8e9 (default 8e9)
  --tasks COUNT            groups of a step (default 64)
  --group COUNT            rollouts of a group (default 8)
  --turns MEAN             turns of a rollout, from 1 to twice that (default 5)
  --tokens MEAN            tokens that a turn generates (default 400)
  --tokens-p99 COUNT       their 99th percentile (default four times the mean)
  --context MEAN           tokens of a rollout that are trained on (default twice what it generates)
  --tool-ms MEAN           time of a turn's tool or environment (default 300)
  --deadline-s SECONDS     rollout.deadlineMs (default 60)
  --concurrency COUNT      rollouts that are played at once (default all that are asked for)
  --tool-p99-ms MS         its 99th percentile, at most 14.9 times the mean (default ten times)
what is known better
  --engine-ms BASE,EACH    time of a decoding step, and what each sequence adds to it
  --train-s SECONDS        time of a step's training
  --train-share SHARE      speed of the engines that is left while a step trains (default 1; 0 with --train-gpus 0)
the simulation
  --staleness N,N          values of trainer.maxStaleness (default 0,1,2,4)
  --spare-tasks COUNT      rollout.redundancy.tasks of a further synchronous row (default 0)
  --spare-rollouts COUNT   rollout.redundancy.rollouts of that row (default 0)
  --steps COUNT            steps that are counted (default 100)
  --seed N                 (default 7)`,
  options: Object.fromEntries(
    [
      "gpus",
      "train-gpus",
      "gpus-per-replica",
      "gpu",
      "publish-s",
      "parameters",
      "tasks",
      "group",
      "turns",
      "tokens",
      "tokens-p99",
      "context",
      "tool-ms",
      "tool-p99-ms",
      "deadline-s",
      "concurrency",
      "engine-ms",
      "train-s",
      "train-share",
      "staleness",
      "spare-tasks",
      "spare-rollouts",
      "steps",
      "seed",
    ].map((name) => [name, { type: "string" as const }]),
  ),
});

const MS = 1_000;
const given = values as Readonly<Record<string, string | undefined>>;
const workload = readWorkload();
const cluster = readCluster(workload);
const steps = numberOf("steps", 100, 1);
const simulation = { warmSteps: Math.ceil(steps / 4), steps, seed: numberOf("seed", 7, 0) };
const schedules: Schedule[] = listOf("staleness", [0, 1, 2, 4]).map((maxStaleness) => ({ maxStaleness }));
const [spareGroups, spareRollouts] = [numberOf("spare-tasks", 0, 0), numberOf("spare-rollouts", 0, 0)];
if (spareGroups + spareRollouts > 0) schedules.push({ maxStaleness: 0, spareGroups, spareRollouts });

console.log(
  `${cluster.replicas} replicas, a decoding step ${cluster.engine.baseMs.toFixed(2)} ms and ${cluster.engine.perSequenceMs.toFixed(3)} ms a sequence; training ${(cluster.trainMs / MS).toFixed(1)} s a step\n`,
);
let synchronous: number | undefined;
const rows = schedules.map((schedule) => {
  const found = simulate(workload, cluster, schedule, simulation);
  synchronous ??= found.episodesPerSecond;
  const { maxStaleness, spareGroups: tasks, spareRollouts: rollouts } = schedule;
  const isSpare = tasks !== undefined;
  return [
    `${isSpare ? `${tasks} tasks and ${rollouts} rollouts spare` : `maxStaleness ${maxStaleness}`}`,
    found.episodesPerSecond.toFixed(2),
    `${(found.episodesPerSecond / synchronous).toFixed(2)} x`,
    percent(found.trainerIdle),
    percent(found.engineIdle),
    found.staleness.toFixed(2),
    percent(found.givenUp),
  ];
});
const heads = ["", "episodes/s", "", "trainer idle", "engines idle", "age in versions", "groups given up"];
const headings = heads.map((head, column) => [head, column === 0 ? "left" : "right"] as const);
for (const line of formatTable(headings, rows)) console.log(line);

function readWorkload(): Workload & { readonly contextTokens: number } {
  const tokens = numberOf("tokens", 400, 1);
  const turns = numberOf("turns", 5, 1);
  const toolMs = numberOf("tool-ms", 300, 0);
  return {
    groupsPerStep: numberOf("tasks", 64, 1),
    groupSize: numberOf("group", 8, 1),
    turns: uniformTurns(turns),
    tokens: logNormal(tokens, spreadOf("tokens-p99", tokens, numberOf("tokens-p99", 4 * tokens, 1))),
    toolMs: logNormal(
      toolMs,
      toolMs === 0 ? 0 : spreadOf("tool-p99-ms", toolMs, numberOf("tool-p99-ms", 10 * toolMs, 1)),
    ),
    deadlineMs: MS * numberOf("deadline-s", 60, 0),
    concurrency: given.concurrency === undefined ? Number.POSITIVE_INFINITY : numberOf("concurrency", 0, 1),
    contextTokens: numberOf("context", 2 * turns * tokens, 1),
  };
}

function readCluster({ groupsPerStep, groupSize, contextTokens }: ReturnType<typeof readWorkload>): Cluster {
  const gpus = numberOf("gpus", 8, 1);
  const trainGpus = numberOf("train-gpus", Math.floor(gpus / 2), 0);
  const perReplica = numberOf("gpus-per-replica", 1, 1);
  const parameters = numberOf("parameters", 8e9, 1);
  const gpu = GPUS[given.gpu ?? "h100"];
  if (gpu === undefined) return refuse("gpu", `one of ${Object.keys(GPUS).join(", ")}`);
  const replicas = Math.floor((gpus - trainGpus) / perReplica);
  if (replicas < 1) return refuse("train-gpus", `at most ${gpus - perReplica}, so that a replica is left`);
  const stepTokens = groupsPerStep * groupSize * contextTokens;
  const arithmetic = trainingMs(gpu, trainGpus === 0 ? gpus : trainGpus, parameters, stepTokens);
  const engine = engineSpeed(gpu, perReplica, parameters);
  const [baseMs = engine.baseMs, perSequenceMs = engine.perSequenceMs] = listOf("engine-ms", []);
  return {
    replicas,
    engine: { baseMs, perSequenceMs },
    trainMs: MS * numberOf("train-s", arithmetic / MS, 0),
    publishMs: MS * numberOf("publish-s", 2, 0),
    shareWhileTraining: numberOf("train-share", trainGpus === 0 ? 0 : 1, 0),
    trainShareWhilePlaying: 1,
  };
}

function spreadOf(name: string, mean: number, p99: number): number {
  return sigmaOf(mean, p99) ?? refuse(name, `from the mean to 14.9 times the mean (${mean})`);
}

function numberOf(name: string, otherwise: number, least: number): number {
  const text = given[name];
  const value = text === undefined ? otherwise : Number(text);
  return Number.isFinite(value) && value >= least ? value : refuse(name, `a number of at least ${least}`);
}

function listOf(name: string, otherwise: readonly number[]): readonly number[] {
  const list = given[name]?.split(",").map(Number) ?? otherwise;
  return list.every((value) => Number.isFinite(value) && value >= 0)
    ? list
    : refuse(name, "numbers, with commas between them");
}

function refuse(name: string, allowed: string): never {
  console.error(`--${name} is ${given[name] ?? "not given"}; it must be ${allowed}`);
  process.exit(2);
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
