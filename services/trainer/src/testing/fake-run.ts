/** A run's record, for the tests of the domain. */

import { type RunConfig, resolveRunConfig } from "@hone/config";
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
