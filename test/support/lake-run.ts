/** Makes small run files for tests from `lake.yaml`. */

import { readFile } from "node:fs/promises";
import path from "node:path";
import { inlineFiles, type ModelInit, parseRunFile, type RunConfig } from "@hone/config";
import { REPOSITORY } from "./stack.ts";

const EXAMPLE = path.join(REPOSITORY, "examples", "01-frozen-lake");

/** What a test changes in the run file. */
export interface LakeRunOptions {
  readonly name: string;
  readonly steps: number;
  readonly tasksPerStep: number;
  readonly minibatches: number;
  /** Rollouts of the scripted policy that the warm start imitates. */
  readonly warmStartTasks: number;
  /** Held-out tasks. */
  readonly evalTasks: number;
  /** Replaces the shape of the model, but not its tokenizer. */
  readonly shape?: Partial<Omit<ModelInit, "tokenizer">>;
  readonly advantage?: RunConfig["algorithm"]["advantage"];
  readonly critic?: RunConfig["trainer"]["critic"];
  readonly stateEvery?: number;
  readonly dynamicSampling?: RunConfig["algorithm"]["dynamicSampling"];
  readonly quantization?: RunConfig["rollout"]["quantization"];
  readonly redundancy?: RunConfig["rollout"]["redundancy"];
  readonly maxStaleness?: number;
  readonly onNewVersion?: RunConfig["trainer"]["onNewVersion"];
  readonly keepsRollouts?: boolean;
  readonly keepStates?: number;
  readonly kl?: Partial<RunConfig["algorithm"]["kl"]>;
  /** Keys of the environment's configuration. */
  readonly environment?: Readonly<Record<string, unknown>>;
}

/** The run file with its agent and tokenizer inlined, so that it can be published. */
export async function lakeRun(options: LakeRunOptions): Promise<RunConfig> {
  const lake = parseRunFile(await readFile(path.join(import.meta.dirname, "lake.yaml"), "utf8"));
  const { warmStart, dataset, rollout, algorithm, trainer } = lake;
  if (warmStart === undefined || dataset.eval?.source !== "environment")
    throw new Error("lake.yaml has no warm start, or no environment to evaluate in");
  const { seeds } = dataset.eval;
  return inlineFiles(
    {
      ...lake,
      name: options.name,
      model: "init" in lake.model ? { init: { ...lake.model.init, ...options.shape } } : lake.model,
      warmStart: { ...warmStart, tasks: options.warmStartTasks },
      dataset: {
        ...dataset,
        train: withConfig(dataset.train, options.environment),
        eval: { ...dataset.eval, seeds: { from: seeds.from, to: seeds.from + options.evalTasks } },
      },
      rollout: {
        ...rollout,
        tasksPerStep: options.tasksPerStep,
        redundancy: options.redundancy,
        quantization: options.quantization ?? rollout.quantization,
      },
      algorithm: {
        ...algorithm,
        advantage: options.advantage ?? algorithm.advantage,
        kl: { ...algorithm.kl, ...options.kl },
        dynamicSampling: options.dynamicSampling,
      },
      trainer: {
        ...trainer,
        steps: options.steps,
        minibatches: options.minibatches,
        critic: options.critic,
        stateEvery: options.stateEvery,
        maxStaleness: options.maxStaleness ?? 0,
        onNewVersion: options.onNewVersion ?? "recompute",
        keepRollouts: options.keepsRollouts ?? false,
        keepStates: options.keepStates ?? 0,
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

function withConfig(
  source: RunConfig["dataset"]["train"],
  changes: Readonly<Record<string, unknown>> = {},
): RunConfig["dataset"]["train"] {
  return source.source === "environment" ? { ...source, config: { ...source.config, ...changes } } : source;
}
