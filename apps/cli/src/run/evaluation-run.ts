/** Makes the run file of an evaluation: a given run file without its training. */

import { type RunConfig, resolveRunConfig } from "@hone/config";
import type { ModelPlace } from "./find-model.ts";
import type { LoadedRun } from "./load-run-file.ts";

/** What an evaluation changes in the run file; undefined values are left as they are. */
export interface EvaluationOptions {
  readonly model: ModelPlace | undefined;
  /** Number of tasks, the first ones of the file's `dataset.eval`. */
  readonly tasks: number | undefined;
  readonly samples: number | undefined;
  readonly passAt: readonly number[] | undefined;
  readonly temperature: number | undefined;
  readonly maxNewTokens: number | undefined;
  /** An external model that is evaluated instead of the run's. */
  readonly endpoint:
    | { readonly baseUrl: string; readonly model: string; readonly keyVariable?: string }
    | undefined;
  /** Also plays each task with the most likely tokens. */
  readonly hasGreedy: boolean;
}

/** Only one run of a name can be active, so that an evaluation needs another name than its training. */
const SUFFIX = "-eval";
const MAX_NAME_CHARACTERS = 40;

/** @throws {ConfigError} when the options contradict the file or one another. */
export function evaluationRun(run: RunConfig, options: EvaluationOptions): LoadedRun {
  const { warmStart: _, trainer, algorithm, rollout, ...rest } = run;
  const { outcomes } = algorithm;
  const temperature = options.temperature ?? rollout.sampling.temperature;
  const name = `${run.name.slice(0, MAX_NAME_CHARACTERS - SUFFIX.length)}${SUFFIX}`;
  const config = resolveRunConfig({
    ...rest,
    name,
    ...(options.model === undefined ? {} : { model: options.model }),
    rollout: {
      ...rollout,
      sampling: {
        ...rollout.sampling,
        temperature,
        maxNewTokens: options.maxNewTokens ?? rollout.sampling.maxNewTokens,
      },
    },
    algorithm: { outcomes },
    trainer: {
      engine: trainer.engine,
      steps: 0,
      optimizer: { kind: "adamw", learningRate: trainer.optimizer.learningRate },
      eval: {
        passReward: trainer.eval.passReward,
        modes: modesFor(temperature, options.hasGreedy),
        ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
        ...(options.tasks === undefined ? {} : { tasks: options.tasks }),
        ...(options.samples === undefined ? {} : { samples: options.samples }),
        ...(options.passAt === undefined ? {} : { passAt: options.passAt }),
      },
    },
  });
  return { name, config, configJson: JSON.stringify(config) };
}

/** At temperature 0 all samples would be equal, so they are played greedily. */
function modesFor(temperature: number, hasGreedy: boolean): RunConfig["trainer"]["eval"]["modes"] {
  if (temperature === 0) return ["greedy"];
  return hasGreedy ? ["sampled", "greedy"] : ["sampled"];
}
