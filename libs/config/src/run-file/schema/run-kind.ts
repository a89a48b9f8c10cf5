/** Tells what kind of work a run file asks for. */

import type { RunConfig } from "./schema.ts";

/** Whether the run trains its model. A run without steps and without a warm start only evaluates it. */
export function isTraining({ trainer, warmStart }: Pick<RunConfig, "trainer" | "warmStart">): boolean {
  return trainer.steps > 0 || warmStart !== undefined;
}

/** Whether the run compares its policy with the reference policy, which is version 0. */
export function hasReference({ algorithm, trainer }: Pick<RunConfig, "algorithm" | "trainer">): boolean {
  const isCompared = algorithm.kl.coefficient > 0 || algorithm.reward.kl !== undefined;
  return isCompared && trainer.steps > 0;
}

/** Whether the run trains a critic beside its policy. */
export function hasCritic({ trainer }: Pick<RunConfig, "trainer">): boolean {
  return trainer.critic !== undefined && trainer.steps > 0;
}

/** The values of k for which the run reports pass@k: those that it names, or the powers of two up to its samples. */
export function passAtOf({ trainer }: Pick<RunConfig, "trainer">): readonly number[] {
  const { passAt, samples } = trainer.eval;
  return passAt ?? Array.from({ length: Math.floor(Math.log2(samples)) + 1 }, (_, i) => 2 ** i);
}
