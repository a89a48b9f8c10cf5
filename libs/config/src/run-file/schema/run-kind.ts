/** What kind of work a run file asks for. */

import type { RunConfig } from "./schema.ts";

/** Whether the run trains its model. One without steps and without a warm start only evaluates it. */
export function isTraining({ trainer, warmStart }: Pick<RunConfig, "trainer" | "warmStart">): boolean {
  return trainer.steps > 0 || warmStart !== undefined;
}

/** Whether the run compares its policy with a reference, version 0. */
export function hasReference({ algorithm, trainer }: Pick<RunConfig, "algorithm" | "trainer">): boolean {
  return algorithm.kl.coefficient > 0 && trainer.steps > 0;
}

/** The k of every pass@k that the run tells: those that it names, or the powers of two up to its samples. */
export function passAtOf({ trainer }: Pick<RunConfig, "trainer">): readonly number[] {
  const { passAt, samples } = trainer.eval;
  return passAt ?? Array.from({ length: Math.floor(Math.log2(samples)) + 1 }, (_, i) => 2 ** i);
}
