/** How a run trains its critic, with what it takes over from the policy filled in. */

import type { RunConfig } from "@hone/config";
import type { ValueLossConfig } from "@hone/rl";
import type { UpdateSettings } from "../step/optimizer-settings.ts";

export interface CriticSettings extends UpdateSettings {
  readonly loss: ValueLossConfig;
  /** Number of first steps in which the critic alone is trained. */
  readonly warmupSteps: number;
}

/** @throws {TypeError} where the run has none. */
export function criticSettings({ trainer }: Pick<RunConfig, "trainer">): CriticSettings {
  const { critic } = trainer;
  if (critic === undefined)
    throw new TypeError("the settings of a critic were asked for in a run without one");
  const { loss, warmupSteps } = critic;
  return {
    loss,
    warmupSteps,
    optimizer: critic.optimizer ?? trainer.optimizer,
    epochs: critic.epochs ?? trainer.epochs,
    minibatches: critic.minibatches ?? trainer.minibatches,
  };
}

/** Whether the policy is left as it is in a step, so that the critic learns to judge it first. */
export function isWarmingCritic({ trainer }: Pick<RunConfig, "trainer">, step: number): boolean {
  return step <= (trainer.critic?.warmupSteps ?? 0);
}
