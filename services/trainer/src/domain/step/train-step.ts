/** One step: tasks, rollouts, credit, optimizer, commit. */

import { Outcome, type Slot, Split } from "@hone/core";
import {
  addRolloutMetrics,
  assignCredit,
  type Credit,
  type Group,
  hasAdvantage,
  MetricSet,
  playsBaseline,
  Reduction,
  rolloutTokenCount,
  successOf,
  versionRange,
} from "@hone/rl";
import { Attr, contextOf, type Span, SpanName, withSpan } from "@hone/telemetry";
import { compareGroups } from "../credit/compare-groups.ts";
import { type KlRewardContext, klRewardsOf } from "../credit/kl-reward.ts";
import { countStepPhase } from "../report/run-metrics.ts";
import { type GatheredTroubles, RunPhase } from "../report/run-status.ts";
import { sendStepEvent } from "../report/step-event.ts";
import { reportTroubles } from "../report/troubles.ts";
import type { Job } from "../rollouts/jobs.ts";
import { batchSlots } from "../rollouts/rollout-gatherer.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { StepTasks } from "../rollouts/split-tasks.ts";
import type { RunContext } from "../run/run-context.ts";
import { dropUnneededEpisodes, episodeBytes } from "../state/episode-room.ts";
import { commitVersion } from "./commit.ts";
import { type LearnContext, learn } from "./learn.ts";
import type { TaskVisitRow } from "./ledger.ts";
import type { Optimised } from "./optimise.ts";
import { traceTraining } from "./trace-training.ts";
import { leaveOutUntrainable } from "./trainable.ts";

/** What gathering a step's rollouts needs. */
type GatherContext = Parameters<typeof compareGroups>[0] & Pick<RunContext, "engine" | "gatherer">;
type StepContext = GatherContext &
  LearnContext &
  KlRewardContext &
  Parameters<typeof commitVersion>[0] &
  Pick<RunContext, "tasks" | "userAdvantage">;

/** Makes version `step` from version `step - 1`. */
export async function trainStep(context: StepContext, step: number): Promise<void> {
  const { run } = context;
  await withSpan(
    SpanName.step,
    {
      parent: "root",
      attributes: { [Attr.runId]: run.runId, [Attr.step]: step, [Attr.ownerEpoch]: run.epoch },
    },
    (span) => trainStepInside(context, step, span),
  );
}

async function trainStepInside(context: StepContext, step: number, span: Span): Promise<void> {
  const { reporter } = context;
  const parent = contextOf(span);
  const began = performance.now();
  reporter.phase(RunPhase.rollout, step);
  const batch = await withSpan(SpanName.stepBatch, { parent }, () => context.tasks.step(step));
  const jobs = jobsOf(context, step, batch);
  const { scored, baselines } = await withSpan(SpanName.stepRollouts, { parent }, () =>
    gatherStep(context, step, jobs),
  );
  const gathered = performance.now();
  const troubles = reportTroubles(context, `step ${step}`, [...scored, ...baselines]);

  reporter.phase(RunPhase.train, step);
  const metrics = new MetricSet();
  const tokenRewards = await klRewardsOf(context, step, scored, metrics);
  const credit = creditOf(context, scored, baselines, tokenRewards);
  addStepMetrics(metrics, credit, scored, context);
  const optimised = await withSpan(SpanName.stepOptimize, { parent }, () =>
    learn(context, step, credit, metrics),
  );
  metrics.add("updates", Reduction.sum, optimised.updateCount);
  const trained = performance.now();
  addTimes(metrics, { rollout: gathered - began, train: trained - gathered });

  const visits = visitsOf(context, step, batch, scored);
  if (batch.numPassedOver !== undefined) metrics.add("tasks/passed_over", Reduction.sum, batch.numPassedOver);
  const times = await withSpan(SpanName.stepCommit, { parent }, () =>
    commitVersion(context, {
      version: step,
      trained: credit.groups.flatMap(({ rollouts }) => rollouts),
      metrics: metrics.toRecord(),
      troubles,
      stepBytes: episodeBytes([...scored, ...baselines]),
      ...(visits !== undefined && { visits }),
    }),
  );
  if (visits !== undefined) context.tasks.curriculum?.record(visits);
  addTimes(metrics, { commit: times.commitMs, publish: times.publishMs, step: performance.now() - began });
  finishStep(context, step, { metrics, troubles, credit, optimised, span });
}

/** Publishes what the step did. A failure here cannot undo the step. */
function finishStep(
  context: StepContext,
  step: number,
  done: {
    metrics: MetricSet;
    troubles: GatheredTroubles | undefined;
    credit: Credit<ScoredRollout>;
    optimised: Optimised;
    span: Span;
  },
): void {
  const { run, logger } = context;
  const record = done.metrics.toRecord();
  const stepMs = record["time/step_ms"] ?? 0;
  const rates =
    stepMs > 0
      ? {
          episodes_per_second: ((record.episodes ?? 0) / stepMs) * 1_000,
          tokens_per_second: ((record.tokens ?? 0) / stepMs) * 1_000,
        }
      : {};
  sendStepEvent(context, step, { metrics: { ...record, ...rates }, troubles: done.troubles });
  traceTraining(run, step, done);
  logger.debug("step committed", { step, reward: record["reward/mean"], success: record.success });
  void dropUnneededEpisodes(context);
}

/** The jobs of a step: those that are trained, and one for each task that is only compared with, where the advantage wants it. */
interface StepJobs {
  readonly trained: readonly Job[];
  readonly baselines: readonly Job[];
}

function jobsOf({ run }: Pick<RunContext, "run">, step: number, batch: StepTasks): StepJobs {
  const { rollout, algorithm } = run.config;
  const { groupSize, sampling } = rollout;
  const jobOf = (slot: Slot, chosen: Job["sampling"]): Job => ({
    slot,
    task: batch.tasks[slot.task]!,
    cursor: batch.cursors[slot.task]!,
    sampling: chosen,
    lowestVersion: step - 1,
    highestVersion: step - 1,
  });
  const slots = batchSlots(Split.train, step, batch.tasks.length, groupSize);
  const baselines = playsBaseline(algorithm.advantage)
    ? batch.tasks.map((_, task) => ({ split: Split.train, step, task, index: groupSize }))
    : [];
  return {
    trained: slots.map((slot) => jobOf(slot, sampling)),
    baselines: baselines.map((slot) => jobOf(slot, { ...sampling, temperature: 0 })),
  };
}

/** @returns the rollouts of both kinds of jobs, each in the order of the jobs. */
async function gatherStep(
  context: GatherContext,
  step: number,
  { trained, baselines }: StepJobs,
): Promise<{ scored: readonly ScoredRollout[]; baselines: readonly ScoredRollout[] }> {
  const { gatherer, reporter } = context;
  const gathered = await gatherer.gather(
    `step ${step}`,
    [...trained, ...baselines],
    (rolloutsDone, rolloutsTotal) => reporter.progress({ step, rolloutsDone, rolloutsTotal }),
  );
  const trainable = leaveOutUntrainable(context, gathered.slice(0, trained.length)).map((rollout) =>
    markStale(rollout, step - 1),
  );
  return {
    scored: await compareGroups(context, trainable),
    baselines: gathered.slice(trained.length).map((rollout) => markStale(rollout, step - 1)),
  };
}

/** Tokens of any other version than the one asked for must not be trained (architecture, part 5, rule 6). */
function markStale(rollout: ScoredRollout, version: number): ScoredRollout {
  const range = versionRange(rollout);
  if (range === undefined || (range.lowest === version && range.highest === version)) return rollout;
  const reason = `its tokens are of the versions ${range.lowest} to ${range.highest}, and ${version} was asked for`;
  return { ...rollout, outcome: Outcome.stale, reason };
}

function creditOf(
  { run, userAdvantage }: Pick<RunContext, "run" | "userAdvantage">,
  scored: readonly ScoredRollout[],
  baselines: readonly ScoredRollout[],
  tokenRewards: ReadonlyMap<ScoredRollout, Float64Array> | undefined,
): Credit<ScoredRollout> {
  const { groupSize } = run.config.rollout;
  const groups: Group<ScoredRollout>[] = [];
  for (let begin = 0; begin < scored.length; begin += groupSize) {
    const rollouts = scored.slice(begin, begin + groupSize);
    const { task } = rollouts[0]!.slot;
    const baseline = baselines[task];
    groups.push({ task, rollouts, ...(baseline !== undefined && { baseline }) });
  }
  return assignCredit(groups, run.config.algorithm, userAdvantage, tokenRewards);
}

/** The result of each task of the step, for the curriculum; undefined where there is none. */
function visitsOf(
  { run }: Pick<RunContext, "run">,
  step: number,
  { tasks, nextCursor }: StepTasks,
  scored: readonly ScoredRollout[],
): TaskVisitRow[] | undefined {
  if (nextCursor === undefined) return undefined;
  const { rollout, algorithm, trainer } = run.config;
  return tasks.map(({ id }, task) => {
    const rollouts = scored.slice(task * rollout.groupSize, (task + 1) * rollout.groupSize);
    return {
      step,
      task,
      taskId: id,
      success: successOf(rollouts, algorithm.outcomes, trainer.eval),
      nextCursor,
    };
  });
}

function addStepMetrics(
  metrics: MetricSet,
  credit: Credit,
  scored: readonly ScoredRollout[],
  { run }: Pick<RunContext, "run">,
): void {
  addRolloutMetrics(metrics, scored, run.config.algorithm.outcomes);
  const flat = credit.groups.filter((group) => !group.rollouts.some(hasAdvantage)).length;
  metrics.add("groups/used", Reduction.sum, credit.groups.length - flat);
  metrics.add("groups/flat", Reduction.sum, flat);
  metrics.add("groups/empty", Reduction.sum, credit.emptyGroupCount);
  for (const [name, value] of Object.entries(credit.metrics)) {
    metrics.add(name, Reduction.last, value);
  }
  const trained = credit.groups.flatMap((group) =>
    group.rollouts.map(({ rollout }) => rolloutTokenCount(rollout)),
  );
  metrics.add(
    "tokens/trained",
    Reduction.sum,
    trained.reduce((sum, count) => sum + count, 0),
  );
}

/** Adds `time/<name>_ms`. */
function addTimes(metrics: MetricSet, times: Readonly<Record<string, number>>): void {
  for (const [name, ms] of Object.entries(times)) {
    metrics.add(`time/${name}_ms`, Reduction.sum, ms);
    countStepPhase(name, ms);
  }
}
