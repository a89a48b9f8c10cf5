/** The event of a committed step. */

import type { RunContext } from "../run/run-context.ts";
import type { StepRecord } from "../step/ledger.ts";

/** Says that a step is committed. */
export function sendStepEvent(
  { run, reporter }: Pick<RunContext, "run" | "reporter">,
  version: number,
  { metrics, troubles }: StepRecord,
): void {
  const totalSteps = run.config.trainer.steps;
  reporter.event({ kind: "step", step: version, totalSteps, version, metrics, troubles }, `step-${version}`);
}
