/** A run's further policy that is trained: its engine, and the run as its steps see it. */

import { hasReference, learningPolicies } from "@hone/config";
import { TerminalError } from "@hone/core";
import type { RunRecord } from "../run/run-record.ts";
import type { TrainingEngine } from "../step/training-engine.ts";

export interface Learner {
  /** As in the run file. */
  readonly name: string;
  readonly engine: TrainingEngine;
  /** Absolute path of the model that it begins with; undefined = it begins as version 0 of the run's own policy. */
  readonly from: string | undefined;
}

/** The run with the settings of one of its further policies in place of those of its own. */
export function runOfLearner(run: RunRecord, name: string): RunRecord {
  const policy = learningPolicies(run.config).find((each) => each.name === name);
  if (policy === undefined) throw new TerminalError("NO_SUCH_POLICY", `the run trains no policy "${name}"`);
  const { trainer } = run.config;
  const {
    optimizer = trainer.optimizer,
    epochs = trainer.epochs,
    minibatches = trainer.minibatches,
  } = policy;
  return { ...run, config: { ...run.config, trainer: { ...trainer, optimizer, epochs, minibatches } } };
}

/**
 * Loads the reference of each learner, which is what it began with.
 * @param reference absolute path of the weights of version 0 of the run's own policy.
 */
export async function loadLearnerReferences(
  run: RunRecord,
  learners: readonly Learner[],
  reference: string,
): Promise<void> {
  if (!hasReference(run.config)) return;
  for (const { engine, from } of learners) await engine.loadReference(from ?? reference);
}
