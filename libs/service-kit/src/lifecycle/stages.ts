/**
 * Shutting down in stages.
 *
 * S1: stages run in order and each once, also after a stage that failed.
 * S2: all of them together end within the grace time; a stage may keep time back for those after it.
 * S3: a stage that takes longer than its time is not waited for, and the report names it.
 */

import { DeadlineError, deadline, describeError } from "@hone/core";
import type { Logger } from "@hone/telemetry";

export interface Stage {
  /** For the report: "drain". */
  readonly name: string;
  /** The signal aborts when the stage's time is over. */
  run(signal: AbortSignal): Promise<void>;
  /** Time kept back for the stages after this one, milliseconds. @default 0 */
  readonly reserveMs?: number;
}

export interface StopReport {
  /** Whether every stage ended in time and without an error. */
  readonly isClean: boolean;
  /** One sentence per stage that did not. */
  readonly problems: readonly string[];
  readonly tookMs: number;
}

/** Even when the grace time is used up, a stage gets this much: most closings are instant. */
const MIN_STAGE_MS = 50;

export async function runStages(
  stages: readonly Stage[],
  options: { readonly graceMs: number; readonly logger: Logger },
): Promise<StopReport> {
  const { graceMs, logger } = options;
  const startedAt = performance.now();
  const problems: string[] = [];
  for (const { name, run, reserveMs = 0 } of stages) {
    const leftMs = startedAt + graceMs - performance.now() - reserveMs;
    try {
      await deadline(name, Math.max(MIN_STAGE_MS, leftMs), run);
      logger.debug("stage done", { stage: name });
    } catch (error) {
      const problem =
        error instanceof DeadlineError
          ? `${name} took longer than ${Math.round(error.waitedForMs)} ms`
          : `${name} failed: ${describeError(error)}`;
      problems.push(problem);
      logger.warn("stage not clean", { stage: name, error });
    }
  }
  return { isClean: problems.length === 0, problems, tookMs: performance.now() - startedAt };
}
