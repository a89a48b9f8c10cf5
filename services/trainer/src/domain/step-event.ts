/** The event of a committed step. */

import type { RunContext } from "./run-context.ts";

/** Says that a step is committed. */
export function sendStepEvent(
  { run, reporter }: Pick<RunContext, "run" | "reporter">,
  version: number,
  metrics: Readonly<Record<string, number>>,
): void {
  const totalSteps = run.config.trainer.steps;
  reporter.event({ kind: "step", step: version, totalSteps, version, metrics }, `step-${version}`);
}
