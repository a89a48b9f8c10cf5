/** The kinds of runs that are tried with a death of the process at each point. */

import type { RunConfig } from "@hone/config";
import type { Slot } from "@hone/core";
import type { RunEnding } from "../domain/step/ledger.ts";
import { testConfig } from "./fake-run.ts";
import type { MemoryWorld } from "./memory-world.ts";

const DEMONSTRATIONS = { kind: "sft", policy: "p", tasks: 4, epochs: 2, batchSize: 2 };
const TRAINER = {
  steps: 3,
  epochs: 2,
  minibatches: 2,
  optimizer: { kind: "adamw", learningRate: 0.1 },
  checkpoint: { every: 1, keep: 2 },
  eval: { every: 2 },
};

const NEAR = { kl: { coefficient: 0.1 } };

/** A run of the first kinds' data with these changes. */
export function crashConfig(
  warmStart: Record<string, unknown> | undefined,
  trainer: Record<string, unknown>,
  algorithm: Record<string, unknown> = {},
  curriculum?: Record<string, unknown>,
) {
  return testConfig({
    algorithm,
    ...(warmStart === undefined ? {} : { warmStart }),
    dataset: {
      train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
      eval: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
      curriculum,
    },
    trainer: { ...TRAINER, ...trainer },
  });
}

/** Three roles: two that learn, and one that earlier versions play. */
function policiesOf(policies: Record<string, unknown>): Pick<RunConfig, "policies" | "roles"> {
  const { policies: resolved, roles } = testConfig({
    policies,
    roles: { own: {}, rival: { policy: "rival" }, past: { policy: "past" } },
  });
  return { ...(resolved && { policies: resolved }), ...(roles && { roles }) };
}

/** One kind of run that is tried with a death at each point. */
export interface CrashKind {
  readonly config: RunConfig;
  readonly trained: number;
  readonly checkpoints: readonly string[];
  /** Folders of state at the end. */
  readonly states: number;
  /** Versions whose states are kept for replays. @default none */
  readonly keptStates?: readonly string[];
  /** @default completed */
  readonly ending?: RunEnding;
  /** Makes rollouts fail, in the same way at each try. */
  readonly failureOf?: MemoryWorld["failureOf"];
  /** Size limit of the stream of episodes. */
  readonly maxBytes?: number;
  /** Whether the order of arrival decides what is trained: a death among the jobs of a step then makes another run. @default false */
  readonly dependsOnArrival?: boolean;
  /** The least number of effects between which the process may die. */
  readonly points: number;
}

/** The first rollout of the first group is ended because it has grown too old. */
function firstGroupGrowsOld({ split, step, task, index }: Slot): ReturnType<MemoryWorld["failureOf"]> {
  const isFirst = split === "train" && step === 1 && task === 0 && index === 0;
  return isFirst ? { outcome: "stale", reason: "its first token is of version 0" } : undefined;
}

export const CRASH_KINDS: Readonly<Record<string, CrashKind>> = {
  "a run": {
    config: crashConfig(DEMONSTRATIONS, {}),
    trained: 4 + 3 * 4,
    checkpoints: ["step-2", "step-3"],
    states: 2,
    points: 60,
  },
  "a run that writes its optimizer every second step and keeps its rollouts": {
    config: crashConfig(DEMONSTRATIONS, {
      stateEvery: 2,
      keepRollouts: true,
      checkpoint: { every: 0, keep: 1 },
    }),
    trained: 4 + 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 60,
  },
  "a run that keeps states more often than its optimizer is due": {
    config: crashConfig(undefined, {
      steps: 4,
      stateEvery: 4,
      keepRollouts: true,
      keepStates: 2,
      checkpoint: { every: 0, keep: 1 },
      eval: { every: 0 },
    }),
    trained: 4 * 4,
    checkpoints: ["step-4"],
    states: 2,
    keptStates: ["0", "2"],
    points: 40,
  },
  "a run whose episodes fill their stream before its optimizer is due": {
    config: crashConfig(
      undefined,
      { steps: 4, stateEvery: 8, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      {},
    ),
    trained: 4 * 4,
    checkpoints: ["step-4"],
    states: 2,
    points: 40,
    maxBytes: 28,
  },
  "a run that learns from a dataset first": {
    config: crashConfig(
      { kind: "sft", dataset: { source: "jsonl", path: "rows.jsonl" }, batchSize: 1 },
      { steps: 1, checkpoint: { every: 0, keep: 1 } },
    ),
    trained: 4,
    checkpoints: ["step-1"],
    states: 2,
    points: 40,
  },
  "a run that learns from a dataset only": {
    config: crashConfig(
      { kind: "sft", dataset: { source: "jsonl", path: "rows.jsonl" }, batchSize: 1 },
      { steps: 0, stateEvery: 2 },
    ),
    trained: 0,
    checkpoints: ["step-0"],
    states: 1,
    points: 30,
  },
  "a run with a KL term against its first version": {
    config: crashConfig(undefined, { steps: 2, stateEvery: 2, checkpoint: { every: 0, keep: 1 } }, NEAR),
    trained: 2 * 4,
    checkpoints: ["step-2"],
    states: 3,
    points: 40,
  },
  "a run whose turns have rewards of their own": {
    config: crashConfig(
      undefined,
      { steps: 3, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { advantage: { kind: "grpo", turnRewards: {} } },
    ),
    trained: 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 30,
  },
  "a run whose tokens have advantages of their own": {
    config: crashConfig(
      undefined,
      { steps: 3, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { advantage: { kind: "reinforce_plus_plus", gamma: 0.9 } },
    ),
    trained: 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 30,
  },
  "a run that compares with baselines of least variance": {
    config: crashConfig(
      undefined,
      { steps: 2, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { advantage: { kind: "optimal_token_baseline" } },
    ),
    trained: 2 * 4,
    checkpoints: ["step-2"],
    states: 2,
    points: 20,
  },
  "a run with a critic": {
    config: crashConfig(
      DEMONSTRATIONS,
      { critic: { epochs: 1 }, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { advantage: { kind: "gae", lambda: 0.9 } },
    ),
    trained: 4 + 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 60,
  },
  "a run with a critic that learns alone at first, and whose steps are replayed": {
    config: crashConfig(
      undefined,
      {
        steps: 4,
        stateEvery: 4,
        critic: { warmupSteps: 1 },
        checkpoint: { every: 0, keep: 1 },
        eval: { every: 0 },
      },
      { advantage: { kind: "gae" }, reward: { kl: { coefficient: 0.1 } } },
    ),
    trained: 4 * 4,
    checkpoints: ["step-4"],
    states: 3,
    points: 60,
  },
  "a run with two policies that learn, one of which also plays against its earlier versions": {
    config: {
      ...crashConfig(
        DEMONSTRATIONS,
        { steps: 4, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
        NEAR,
      ),
      ...policiesOf({ rival: { epochs: 1 }, past: { earlier: { every: 2, size: 2 } } }),
    },
    trained: 4 + 4 * 8,
    checkpoints: ["step-4"],
    states: 3,
    points: 80,
  },
  "a run with a curriculum": {
    config: crashConfig(
      undefined,
      { steps: 4, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      {},
      { kind: "success", chance: 0.5 },
    ),
    trained: 4 * 4,
    checkpoints: ["step-4"],
    states: 2,
    points: 40,
  },
  "a run that plays more tasks where groups teach nothing": {
    config: crashConfig(
      undefined,
      { steps: 3, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { dynamicSampling: {} },
    ),
    trained: 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 60,
  },
  "a run with a curriculum that plays more tasks where groups teach nothing": {
    config: crashConfig(
      undefined,
      { steps: 2, stateEvery: 2, checkpoint: { every: 0, keep: 1 }, eval: { every: 0 } },
      { dynamicSampling: { metric: "success" } },
      { kind: "success", chance: 0.5 },
    ),
    trained: 2 * 4,
    checkpoints: ["step-2"],
    states: 2,
    points: 40,
  },
  "an asynchronous run, one of whose groups grows too old": {
    config: crashConfig(undefined, { maxStaleness: 1, checkpoint: { every: 0, keep: 1 } }),
    trained: 3 * 4,
    checkpoints: ["step-3"],
    states: 2,
    points: 60,
    failureOf: firstGroupGrowsOld,
    dependsOnArrival: true,
  },
  "an asynchronous run with a curriculum, whose steps are replayed": {
    config: crashConfig(
      undefined,
      {
        steps: 5,
        maxStaleness: 2,
        stateEvery: 3,
        checkpoint: { every: 0, keep: 1 },
        eval: { every: 0 },
      },
      {},
      { kind: "success", chance: 0.5 },
    ),
    trained: 5 * 4,
    checkpoints: ["step-5"],
    states: 2,
    points: 60,
    failureOf: firstGroupGrowsOld,
    dependsOnArrival: true,
  },
  "a run whose second step fails as a whole": {
    config: crashConfig(undefined, { stateEvery: 2, checkpoint: { every: 1, keep: 2 } }),
    trained: 4,
    checkpoints: ["step-1"],
    states: 2,
    points: 20,
    ending: "failed",
    failureOf: ({ split, step, task, index }) =>
      split === "train" && step === 2
        ? { outcome: "agent_failed", reason: `no such module (request ${task}${index})` }
        : undefined,
  },
  "an evaluation": {
    config: crashConfig(undefined, { steps: 0, eval: { samples: 3, modes: ["sampled"], tasks: 2 } }),
    trained: 0,
    checkpoints: [],
    states: 1,
    points: 15,
  },
};
