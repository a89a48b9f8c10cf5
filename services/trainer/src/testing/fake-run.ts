/** A run's record and a rollout of it, for the tests of the domain. */

import { type RunConfig, resolveRunConfig } from "@hone/config";
import { Outcome, type Slot } from "@hone/core";
import { contextOfTraceparent } from "@hone/telemetry";
import { batchSlots } from "../domain/rollouts/batch-slots.ts";
import type { Job } from "../domain/rollouts/jobs.ts";
import type { ScoredRollout } from "../domain/rollouts/scored-rollout.ts";
import { type RunRecord, RunStage } from "../domain/run/run-record.ts";

/** A small run file, resolved. */
export function testConfig(changes: Record<string, unknown> = {}): RunConfig {
  return resolveRunConfig({
    name: "test",
    seed: 5,
    model: { init: { architecture: "qwen3", hiddenSize: 8, numLayers: 1, numHeads: 2, tokenizer: "t" } },
    dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } } },
    agent: { name: "a" },
    rollout: { tasksPerStep: 2, groupSize: 2 },
    trainer: { steps: 3, minibatches: 2, optimizer: { kind: "adamw", learningRate: 0.1 } },
    ...changes,
  });
}

export function testRun(changes: Partial<RunRecord> = {}): RunRecord {
  const config = changes.config ?? testConfig();
  return {
    runId: "test-1",
    requestSequence: 1,
    stage: RunStage.active,
    config,
    configJson: JSON.stringify(config),
    version: undefined,
    stateFolder: "",
    stateDigest: "",
    arithmetic: "",
    stateFiles: {},
    recovery: undefined,
    nextSequence: 1,
    epoch: 1,
    tenures: 1,
    resumptions: 0,
    isCancelRequested: false,
    isPauseRequested: false,
    endReason: "",
    ...changes,
  };
}

/** A completed rollout without samples, the first message of the stream. */
export function testRollout(slot: Slot, changes: Partial<ScoredRollout> = {}): ScoredRollout {
  return {
    slot,
    attempt: 1,
    outcome: Outcome.completed,
    scores: [],
    samples: [],
    metrics: {},
    turnCount: 1,
    sequence: 1,
    bytes: 1,
    resumption: 0,
    durationMs: 1,
    trace: contextOfTraceparent(undefined),
    ...changes,
  };
}

/** The jobs of two tasks with two rollouts each. @param partOf the part of a mix that a slot is of. */
export function testJobs(step: number, partOf: (slot: Slot) => string = () => ""): Job[] {
  return batchSlots("train", step, 2, 2).map((slot) => ({
    slot,
    task: {
      id: "t",
      environment: "e",
      environmentSeed: 0n,
      environmentConfigJson: "",
      rowJson: "",
      part: partOf(slot),
    },
    cursor: slot.task,
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 8 },
    lowestVersion: 0,
    highestVersion: 0,
  }));
}
