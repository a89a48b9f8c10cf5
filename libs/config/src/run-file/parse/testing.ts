/** A run file, and what is wrong with a changed one, for the tests of this folder. */

import assert from "node:assert/strict";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { MAX_PROBLEMS } from "../../problems.ts";

/** The text of a run file with few keys. */
export const RUN = `
name: frozen-lake
seed: 7
model: { init: { architecture: qwen3, hiddenSize: 64, numLayers: 3, numHeads: 4, tokenizer: tokenizer.json } }
dataset:
  train: { source: environment, environment: frozen_lake, seeds: { from: 0, to: 1000 } }
  eval: { source: environment, environment: frozen_lake, seeds: { from: 2000, to: 2100 } }
agent: { name: frozen_lake, config: { historyTurns: 0 } }
rollout: { tasksPerStep: 32, groupSize: 8, sampling: { temperature: 1, maxNewTokens: 16 } }
trainer: { steps: 200, eval: { every: 20 }, optimizer: { kind: adamw, learningRate: 0.001 } }
`;

/** The problems of what is read; empty if it was accepted. Any other error than a ConfigError fails the test. */
export function problemsOf(read: () => unknown): readonly ConfigProblem[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    assert.ok(error.problems.length > 0 && error.problems.length <= MAX_PROBLEMS);
    for (const { message } of error.problems) {
      assert.match(message, /^(the file|`.*`) (is|has) .*; (it must be .|no key is allowed there$)/s);
      assert.ok(message.length < 2_000, `a message of ${message.length} characters`);
    }
    return error.problems;
  }
}
