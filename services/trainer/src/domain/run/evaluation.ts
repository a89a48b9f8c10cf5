/**
 * Evaluation of one policy version on the held-out split, sampled and greedy.
 *
 * E1: its rollouts are pinned to the version: no other version may generate for them.
 * E2: the first rollouts of a task are sampled with the run's parameters, and the last one takes the most likely token each
 *     time; the run file may ask for only one of the two modes.
 * E3: a recorded evaluation is never made again; a version whose evaluation was interrupted is evaluated anew.
 * E4: the last evaluation of a training takes the whole split, because it measures the result of the run; those before it
 *     may take fewer tasks, because the run waits for them. A run that only evaluates takes as many as its file says.
 */

import { isTraining, passAtOf, type RunConfig } from "@hone/config";
import { Split } from "@hone/core";
import { addEvaluationMetrics, addRolloutMetrics, MetricSet, type Rollout } from "@hone/rl";
import { Attr, linkTo, SpanName, withSpan } from "@hone/telemetry";
import { OwnershipLostError } from "../errors.ts";
import { addPartMetrics } from "../report/part-metrics.ts";
import { addRoleMetrics } from "../report/role-metrics.ts";
import { EvaluationMode } from "../report/run-event.ts";
import { RunPhase } from "../report/run-status.ts";
import { gatheredTroubles, reportTroubles } from "../report/troubles.ts";
import { WaitOwner } from "../report/wait.ts";
import { batchSlots } from "../rollouts/batch-slots.ts";
import type { Job, Task } from "../rollouts/jobs.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import { dropUnneededEpisodes, episodeBytes } from "../state/episode-room.ts";
import { isReplayFree } from "../state/state-cadence.ts";
import type { EvaluationRecord } from "../step/ledger.ts";
import type { RunContext } from "./run-context.ts";

/** What an evaluation needs: no engine, and nothing of the state. */
type EvaluationContext = Pick<
  RunContext,
  "run" | "ledger" | "rollouts" | "reporter" | "inbox" | "gatherer" | "tasks" | "logger" | "progress"
>;

/** The mode of each rollout of a task, by its index (E2). */
function modesOf({ trainer }: RunConfig): EvaluationMode[] {
  const { modes, samples } = trainer.eval;
  return [
    ...(modes.includes(EvaluationMode.sampled) ? new Array(samples).fill(EvaluationMode.sampled) : []),
    ...(modes.includes(EvaluationMode.greedy) ? [EvaluationMode.greedy] : []),
  ];
}

/** Evaluates a version unless that was done (E3), and publishes the result. */
export async function evaluate(context: EvaluationContext, version: number): Promise<void> {
  const { run, reporter, ledger } = context;
  const known = await reporter.untilAvailable(
    { text: "the database (evaluations)", owner: WaitOwner.database },
    () => ledger.evaluations(run.runId, version),
  );
  const isKnown = known.length === run.config.trainer.eval.modes.length;
  const records = isKnown ? known : await evaluateNow(context, version);
  for (const record of records) {
    reporter.event({ kind: "evaluated", ...record }, `evaluated-${version}-${record.mode}`);
  }
}

async function evaluateNow(context: EvaluationContext, version: number): Promise<EvaluationRecord[]> {
  const { run, reporter, ledger, inbox, progress } = context;
  reporter.phase(RunPhase.evaluate, version);
  return withSpan(
    SpanName.evaluate,
    { parent: "root", attributes: { [Attr.runId]: run.runId, [Attr.policyVersion]: version } },
    async (span) => {
      const modes = modesOf(run.config);
      const { tasks, scored } = await gatherEvaluation(context, version, modes);
      reportTroubles(context, evaluationOf(version), scored);
      for (const { trace } of scored) {
        const link = linkTo(trace);
        if (link !== undefined) span.addLink(link);
      }
      const records = [...new Set(modes)].map((mode) =>
        recordOf(context, version, mode, {
          tasks,
          rollouts: scored.filter(({ slot }) => modes[slot.index] === mode),
        }),
      );
      const neededFrom = isReplayFree(run.config, progress.recovery, version)
        ? inbox.neededFrom
        : progress.neededFrom;
      const isOurs = await reporter.untilAvailable(
        { text: "the database (evaluation)", owner: WaitOwner.database },
        () => ledger.recordEvaluation(run.runId, run.epoch, records, neededFrom),
      );
      if (!isOurs) throw new OwnershipLostError(run.runId, run.epoch);
      progress.neededFrom = neededFrom;
      progress.evaluationBytes = episodeBytes(scored);
      void dropUnneededEpisodes(context);
      return records;
    },
  );
}

async function gatherEvaluation(
  context: Pick<EvaluationContext, "run" | "tasks" | "gatherer" | "reporter">,
  version: number,
  modes: readonly EvaluationMode[],
): Promise<{ tasks: readonly Task[]; scored: ScoredRollout[] }> {
  const { run, tasks, gatherer, reporter } = context;
  const { steps, eval: evaluation } = run.config.trainer;
  const isWhole = version === steps && isTraining(run.config); // E4
  const batch = await tasks.evaluation(isWhole ? undefined : evaluation.tasks);
  const { sampling } = run.config.rollout;
  const jobs: Job[] = batchSlots(Split.eval, version, batch.tasks.length, modes.length).map((slot) => ({
    slot,
    task: batch.tasks[slot.task]!,
    cursor: batch.cursors[slot.task]!,
    sampling: modes[slot.index] === EvaluationMode.greedy ? { ...sampling, temperature: 0 } : sampling,
    ...(evaluation.endpoint === undefined ? {} : { endpoint: evaluation.endpoint }),
    lowestVersion: version, // E1
    highestVersion: version,
  }));
  const scored = await gatherer.gather(evaluationOf(version), jobs, (rolloutsDone, rolloutsTotal) =>
    reporter.progress({ step: version, rolloutsDone, rolloutsTotal }),
  );
  return { tasks: batch.tasks, scored };
}

function recordOf(
  { run }: Pick<RunContext, "run">,
  version: number,
  mode: EvaluationMode,
  { tasks, rollouts }: { readonly tasks: readonly Task[]; readonly rollouts: readonly Rollout[] },
): EvaluationRecord {
  const { outcomes } = run.config.algorithm;
  const { passReward } = run.config.trainer.eval;
  const metrics = new MetricSet();
  addRolloutMetrics(metrics, rollouts, outcomes);
  addRoleMetrics(metrics, run.config, rollouts, outcomes);
  const played = Map.groupBy(rollouts, ({ slot }) => slot.task);
  const pass = { passAt: passAtOf(run.config), passReward };
  addEvaluationMetrics(metrics, [...played.values()], outcomes, pass);
  const described = [...played].map(([task, own]) => ({ task: tasks[task]!, rollouts: own }));
  addPartMetrics(metrics, described, { outcomes, pass });
  const troubles = gatheredTroubles(evaluationOf(version), rollouts);
  return { version, mode, episodes: rollouts.length, metrics: metrics.toRecord(), troubles };
}

function evaluationOf(version: number): string {
  return `the evaluation of version ${version}`;
}
