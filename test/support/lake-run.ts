/** Makes small run files for tests from the first example. */

import { readFile } from "node:fs/promises";
import path from "node:path";
import { inlineFiles, type ModelInit, parseRunFile, type RunConfig } from "@hone/config";
import { REPOSITORY } from "./stack.ts";

const EXAMPLE = path.join(REPOSITORY, "examples", "01-frozen-lake");

/** What a test changes in the example. */
export interface LakeRunOptions {
  readonly name: string;
  readonly steps: number;
  readonly tasksPerStep: number;
  readonly minibatches: number;
  /** Rollouts of the scripted policy that the warm start imitates. */
  readonly warmStartTasks: number;
  /** Held-out tasks. */
  readonly evalTasks: number;
  /** Replaces the shape of the example's model, but not its tokenizer. */
  readonly shape?: Partial<Omit<ModelInit, "tokenizer">>;
  readonly advantage?: RunConfig["algorithm"]["advantage"];
  readonly critic?: RunConfig["trainer"]["critic"];
  readonly stateEvery?: number;
  readonly dynamicSampling?: RunConfig["algorithm"]["dynamicSampling"];
  readonly redundancy?: RunConfig["rollout"]["redundancy"];
}

/** The example's run file with its agent and tokenizer inlined, so that it can be published. */
export async function lakeRun(options: LakeRunOptions): Promise<RunConfig> {
  const example = parseRunFile(await readFile(path.join(EXAMPLE, "run.yaml"), "utf8"));
  const { warmStart, dataset, rollout, algorithm, trainer } = example;
  if (warmStart === undefined || dataset.eval?.source !== "environment")
    throw new Error("the example has changed");
  const { seeds } = dataset.eval;
  return inlineFiles(
    {
      ...example,
      name: options.name,
      model: "init" in example.model ? { init: { ...example.model.init, ...options.shape } } : example.model,
      warmStart: { ...warmStart, tasks: options.warmStartTasks },
      dataset: {
        ...dataset,
        eval: { ...dataset.eval, seeds: { from: seeds.from, to: seeds.from + options.evalTasks } },
      },
      rollout: { ...rollout, tasksPerStep: options.tasksPerStep, redundancy: options.redundancy },
      algorithm: {
        ...algorithm,
        advantage: options.advantage ?? algorithm.advantage,
        dynamicSampling: options.dynamicSampling,
      },
      trainer: {
        ...trainer,
        steps: options.steps,
        minibatches: options.minibatches,
        critic: options.critic,
        stateEvery: options.stateEvery,
        optimizer: {
          ...trainer.optimizer,
          schedule: {
            ...trainer.optimizer.schedule,
            warmupSteps: Math.min(trainer.optimizer.schedule.warmupSteps, options.steps),
          },
        },
        eval: { ...trainer.eval, every: 0, tasks: undefined },
      },
    },
    EXAMPLE,
  );
}
