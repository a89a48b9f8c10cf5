/**
 * Evaluation of one policy version on the held-out split, sampled and greedy.
 *
 * E1: its rollouts are pinned to the version: no other may generate for them.
 * E2: of a task, index 0 is sampled with the run's parameters, index 1 takes the most likely token each time.
 * E3: a recorded evaluation is never made again, a version whose evaluation was cut off is evaluated anew.
 * E4: the last evaluation takes the whole split, as it tells what the run is worth; those before it may take fewer
 *     tasks, as the run waits for them.
 */

import type { RunConfig } from "@hone/config";
import { Split } from "@hone/core";
import { addRolloutMetrics, MetricSet } from "@hone/rl";
import { Attr, SpanName, withSpan } from "@hone/telemetry";
import { OwnershipLostError } from "./errors.ts";
import { EvaluationMode, type EvaluationRecord, type Job } from "./ports.ts";
import { batchSlots } from "./rollout-gatherer.ts";
import type { RunContext } from "./run-context.ts";
import { RunPhase } from "./run-status.ts";
import type { ScoredRollout } from "./scored-rollout.ts";
import { WaitOwner } from "./wait.ts";

/** Modes by index within the task (E2). */
const MODES = [EvaluationMode.sampled, EvaluationMode.greedy] as const;

/** Whether a version is evaluated: the first, the last, and every n-th in between. */
export function isEvaluationDue(config: RunConfig, version: number): boolean {
  if (config.dataset.eval === undefined) return false;
  const { steps, eval: evaluation } = config.trainer;
  return version === 0 || version === steps || (evaluation.every > 0 && version % evaluation.every === 0);
}

/** Evaluates a version unless that was done (E3), and says what came out. */
export async function evaluate(context: RunContext, version: number): Promise<void> {
  const { run, reporter, ledger } = context;
  const known = await reporter.untilAvailable(
    { text: "the database (evaluations)", owner: WaitOwner.database },
    () => ledger.evaluations(run.runId, version),
  );
  const records = known.length === MODES.length ? known : await evaluateNow(context, version);
  for (const record of records) {
    reporter.event({ kind: "evaluated", ...record }, `evaluated-${version}-${record.mode}`);
  }
}

async function evaluateNow(context: RunContext, version: number): Promise<EvaluationRecord[]> {
  const { run, reporter, ledger, inbox } = context;
  reporter.phase(RunPhase.evaluate, version);
  return withSpan(
    SpanName.evaluate,
    { parent: "root", attributes: { [Attr.runId]: run.runId, [Attr.policyVersion]: version } },
    async () => {
      const scored = await gatherEvaluation(context, version);
      const records = MODES.map((mode, index) =>
        recordOf(
          context,
          version,
          mode,
          scored.filter(({ rollout }) => rollout.slot.index === index),
        ),
      );
      const isOurs = await reporter.untilAvailable(
        { text: "the database (evaluation)", owner: WaitOwner.database },
        () => ledger.recordEvaluation(run.runId, run.epoch, records, inbox.nextSequence),
      );
      if (!isOurs) throw new OwnershipLostError(run.runId, run.epoch);
      return records;
    },
  );
}

async function gatherEvaluation(context: RunContext, version: number): Promise<ScoredRollout[]> {
  const { run, tasks, gatherer, reporter } = context;
  const { steps, eval: evaluation } = run.config.trainer;
  const batch = await tasks.evaluation(version === steps ? undefined : evaluation.tasks); // E4
  const { sampling } = run.config.rollout;
  const jobs: Job[] = batchSlots(Split.eval, version, batch.tasks.length, MODES.length).map((slot) => ({
    slot,
    task: batch.tasks[slot.task]!,
    cursor: batch.cursor + slot.task,
    sampling: MODES[slot.index] === EvaluationMode.greedy ? { ...sampling, temperature: 0 } : sampling,
    lowestVersion: version, // E1
    highestVersion: version,
  }));
  return gatherer.gather(`the evaluation of version ${version}`, jobs, (rolloutsDone, rolloutsTotal) =>
    reporter.progress({ step: version, rolloutsDone, rolloutsTotal }),
  );
}

function recordOf(
  { run }: RunContext,
  version: number,
  mode: EvaluationMode,
  scored: readonly ScoredRollout[],
): EvaluationRecord {
  const metrics = new MetricSet();
  addRolloutMetrics(
    metrics,
    scored.map(({ rollout }) => rollout),
    run.config.algorithm.outcomes,
  );
  return { version, mode, episodes: scored.length, metrics: metrics.toRecord() };
}
