/** One step: tasks, rollouts, credit, optimizer, commit. */

import { curriculaOf } from "@hone/config";
import { slotKey } from "@hone/core";
import {
  addRolloutMetrics,
  addStaleness,
  assignCredit,
  type Credit,
  type Group,
  hasAdvantage,
  MetricSet,
  Reduction,
  type Rollout,
  readsSources,
  rolloutTokenCount,
  successOf,
} from "@hone/rl";
import { Attr, type Context, contextOf, type Span, SpanName, withSpan } from "@hone/telemetry";
import { type KlRewardContext, klRewardsOf } from "../credit/kl-reward.ts";
import { squaresOf, valuesOf } from "../credit/score-rollouts.ts";
import { keepGroups, recallGroups } from "../groups/keep-groups.ts";
import { playGroups } from "../groups/play-groups.ts";
import { countReady, playOpenGroups } from "../groups/play-open-groups.ts";
import {
  type AsynchronousPart,
  type PlayContext,
  type PlayedGroups,
  rolloutsOf,
} from "../groups/played-groups.ts";
import { type Lesson, lessonsOf } from "../learners/lessons.ts";
import { leftOutOf } from "../record/left-out.ts";
import type { PolicyTokens } from "../record/rollout-tokens.ts";
import { openTokenRecorder } from "../record/token-recorder.ts";
import { addPartMetrics } from "../report/part-metrics.ts";
import { addRoleMetrics } from "../report/role-metrics.ts";
import { countStepPhase } from "../report/run-metrics.ts";
import { type GatheredTroubles, RunPhase } from "../report/run-status.ts";
import { sendStepEvent } from "../report/step-event.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import { kindOf } from "../rollouts/task-fields.ts";
import type { RunContext } from "../run/run-context.ts";
import { dropUnneededEpisodes, episodeBytes } from "../state/episode-room.ts";
import { askTeachers, type TaughtGroup } from "../teachers/ask-teachers.ts";
import { commitVersion } from "./commit.ts";
import { type LearnContext, learn, meansOf } from "./learn.ts";
import type { TaskVisitRow } from "./ledger.ts";
import type { Optimised } from "./optimise.ts";
import { traceTraining } from "./trace-training.ts";

type StepContext = PlayContext &
  LearnContext &
  KlRewardContext &
  Parameters<typeof commitVersion>[0] &
  Pick<RunContext, "own" | "teachers" | "engineIdle">;

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
  const { reporter, run } = context;
  const parent = contextOf(span);
  const began = performance.now();
  reporter.phase(RunPhase.rollout, step);
  const groups = await groupsOfStep(context, step, parent);
  const { troubles } = groups;
  await keepGroups(context, step, groups);
  const gathered = performance.now();

  reporter.phase(RunPhase.train, step);
  const metrics = new MetricSet();
  const trainable = groups.trained.flatMap(({ rollouts }) => rollouts);
  const lessons: CreditedLesson[] = [];
  for (const lesson of lessonsOf(run.config, creditedGroups(context, groups))) {
    lessons.push(await creditLesson(context, step, lesson, groups.tasks));
  }
  const scored = performance.now();
  addStepMetrics(metrics, context, groups, lessons);
  if (run.config.replay === undefined)
    await context.deadlines.addFigures(metrics, step, rolloutsOf(groups.played));
  if (groups.asynchronous) addStalenessMetrics(metrics, step, trainable, groups.asynchronous);
  const { optimised, tokens } = await withSpan(SpanName.stepOptimize, { parent }, () =>
    learnLessons(step, lessons, metrics),
  );
  metrics.add("updates", Reduction.sum, optimised.updateCount);
  const trained = performance.now();
  addTimes(metrics, {
    rollout: gathered - began,
    ...(lessons.some(({ isScored }) => isScored) && { score: scored - gathered }),
    train: trained - gathered,
  });

  const { openGroups } = context;
  if (openGroups !== undefined) {
    const readyCount = countReady({ ...context, openGroups }, step + 1);
    metrics.add("groups/ready", Reduction.last, readyCount);
  }
  const visits = visitsOf(context, step, groups);
  const measured = context.engineIdle.measure();
  const times = await withSpan(SpanName.stepCommit, { parent }, () =>
    commitVersion(context, {
      version: step,
      trained: lessons.flatMap(({ credit }) => credit.groups).flatMap(({ rollouts }) => rollouts),
      metrics: metrics.toRecord(),
      troubles,
      leftOut: leftOutOf(context.run, groups, { leftOut: wholeLeftOut(lessons) }),
      tokens,
      stepBytes: episodeBytes(rolloutsOf(groups.played)),
      ...(visits !== undefined && { visits }),
      ...(openGroups && { taken: groups.asynchronous?.taken ?? [] }),
    }),
  );
  if (visits !== undefined) context.tasks.record(visits);
  addTimes(metrics, { commit: times.commitMs, publish: times.publishMs, step: performance.now() - began });
  addIdle(metrics, await measured);
  const credited = lessons.flatMap(({ credit }) => credit.groups);
  finishStep(context, step, { metrics, troubles, credited, optimised, span });
}

/** What one of the run's policies learns, and what it learns with. */
interface CreditedLesson {
  /** Undefined for the run's own policy. */
  readonly policy: string | undefined;
  readonly means: LearnContext;
  readonly credit: Credit<ScoredRollout>;
  readonly values: ReadonlyMap<Rollout, Float32Array> | undefined;
  /** The lesson's own figures so far. */
  readonly metrics: MetricSet;
  /** Whether an engine or a teacher was asked before the credit. */
  readonly isScored: boolean;
}

/** Scores the rollouts of a lesson and assigns their credit. @param tasks of the step. */
async function creditLesson(
  context: StepContext,
  step: number,
  { policy, groups }: Lesson<ScoredRollout>,
  tasks: PlayedGroups["tasks"],
): Promise<CreditedLesson> {
  const means = meansOf(context, policy);
  const { run } = means;
  const metrics = new MetricSet();
  const trainable = groups.flatMap(({ rollouts }) => rollouts);
  const tokenRewards = await klRewardsOf({ ...context, ...means }, step, trainable, metrics);
  const values = await valuesOf(means, trainable);
  const squares = await squaresOf(means, trainable);
  const taught = await askTeachers(context, taughtGroups(groups, tasks), metrics);
  const isScored = [tokenRewards, values, squares, taught].some((scores) => scores !== undefined);
  const inputs = { own: means.own.advantage, tokenRewards, values, squares, taught };
  const credit = assignCredit(groups, run.config.algorithm, inputs);
  for (const [name, value] of Object.entries(credit.metrics)) metrics.add(name, Reduction.last, value);
  return { policy, means, credit, values, metrics, isScored };
}

/** Makes the updates of all lessons, one policy after the other. */
async function learnLessons(
  step: number,
  lessons: readonly CreditedLesson[],
  metrics: MetricSet,
): Promise<{ readonly optimised: Optimised; readonly tokens: readonly PolicyTokens[] }> {
  const figures: Optimised["figures"][] = [];
  const tokens: PolicyTokens[] = [];
  let updateCount = 0;
  for (const { policy, means, credit, values, metrics: own } of lessons) {
    const recorder = openTokenRecorder(means.run, policy);
    const optimised = await learn(means, step, { credit, values, recorder }, own);
    if (recorder !== undefined) tokens.push(recorder.finish());
    figures.push(optimised.figures);
    updateCount += optimised.updateCount;
    const area = policy === undefined ? "" : `policy/${policy}/`;
    for (const [name, value] of Object.entries(own.toRecord())) {
      metrics.add(`${area}${name}`, Reduction.last, value);
    }
  }
  const optimised = { figures: new Map(figures.flatMap((each) => [...each])), updateCount };
  return { optimised, tokens };
}

/** Plays the groups of a step, or takes those of the run that is replayed. */
function groupsOfStep(context: StepContext, step: number, parent: Context): Promise<PlayedGroups> {
  const { openGroups, run } = context;
  if (run.config.replay !== undefined) return recallGroups(context, step);
  if (openGroups === undefined) return playGroups(context, step, parent);
  return playOpenGroups({ ...context, openGroups }, step, parent);
}

/** The rollouts of which no part is trained. */
function wholeLeftOut(lessons: readonly CreditedLesson[]): ScoredRollout[] {
  const bySlot = new Map(
    lessons.flatMap(({ credit }) => credit.leftOut).map((rollout) => [slotKey(rollout.slot), rollout]),
  );
  for (const { rollouts } of lessons.flatMap(({ credit }) => credit.groups)) {
    for (const { rollout } of rollouts) bySlot.delete(slotKey(rollout.slot));
  }
  return [...bySlot.values()];
}

/** Publishes what the step did. A failure here cannot undo the step. */
function finishStep(
  context: StepContext,
  step: number,
  done: {
    metrics: MetricSet;
    troubles: GatheredTroubles | undefined;
    credited: Credit<ScoredRollout>["groups"];
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

function creditedGroups(
  { run }: Pick<RunContext, "run">,
  { trained, tasks }: PlayedGroups,
): readonly Group<ScoredRollout>[] {
  if (!readsSources(run.config.algorithm)) return trained;
  return trained.map((group) => ({ ...group, source: kindOf(tasks[group.task]!) }));
}

function taughtGroups(
  groups: readonly Group<ScoredRollout>[],
  tasks: PlayedGroups["tasks"],
): TaughtGroup<ScoredRollout>[] {
  return groups.map(({ task, rollouts }) => ({ task: tasks[task]!, rollouts }));
}

/** The result of each task of the step, for the steps to come; undefined if their tasks do not depend on it. */
function visitsOf(
  { run, tasks }: Pick<RunContext, "run" | "tasks">,
  step: number,
  { played, tasks: playedTasks, nextCursor }: PlayedGroups,
): TaskVisitRow[] | undefined {
  if (!tasks.dependsOnVisits) return undefined;
  const { algorithm, trainer } = run.config;
  return played.map(({ task, rollouts }) => ({
    step,
    task,
    taskId: playedTasks[task]!.id,
    success: successOf(rollouts, algorithm.outcomes, trainer.eval),
    nextCursor,
  }));
}

function addStepMetrics(
  metrics: MetricSet,
  { run }: Pick<RunContext, "run">,
  groups: PlayedGroups,
  lessons: readonly CreditedLesson[],
): void {
  const { played, trained: chosen, surplusCount, batchCount, numPassedOver } = groups;
  const { algorithm, dataset, rollout } = run.config;
  addRolloutMetrics(
    metrics,
    played.flatMap(({ rollouts }) => rollouts),
    algorithm.outcomes,
  );
  addPartMetrics(
    metrics,
    played.map(({ task, rollouts }) => ({ task: groups.tasks[task]!, rollouts })),
    algorithm,
  );
  addRoleMetrics(
    metrics,
    run.config,
    played.flatMap(({ rollouts }) => rollouts),
    algorithm.outcomes,
  );
  const credited = lessons.flatMap(({ credit }) => credit.groups);
  const flat = credited.filter((group) => !group.rollouts.some(hasAdvantage)).length;
  metrics.add("groups/used", Reduction.sum, credited.length - flat);
  metrics.add("groups/flat", Reduction.sum, flat);
  const empty = lessons.reduce((sum, { credit }) => sum + credit.emptyGroupCount, 0);
  metrics.add("groups/empty", Reduction.sum, empty);
  if (algorithm.dynamicSampling !== undefined) {
    metrics.add("groups/played", Reduction.sum, played.length);
    metrics.add("groups/filtered", Reduction.sum, played.length - chosen.length - surplusCount);
    metrics.add("groups/surplus", Reduction.sum, surplusCount);
    metrics.add("sampling/batches", Reduction.sum, batchCount);
  }
  if (rollout.redundancy !== undefined) metrics.add("rollouts/unneeded", Reduction.sum, groups.unneededCount);
  if (curriculaOf({ dataset }).length > 0) metrics.add("tasks/passed_over", Reduction.sum, numPassedOver);
  const trained = credited.flatMap((group) =>
    group.rollouts.map(({ rollout }) => rolloutTokenCount(rollout)),
  );
  metrics.add(
    "tokens/trained",
    Reduction.sum,
    trained.reduce((sum, count) => sum + count, 0),
  );
}

/** Adds which shares of the time the trainer and the engines had nothing to do. @param engines undefined = unknown. */
function addIdle(metrics: MetricSet, engines: number | undefined): void {
  const { "time/rollout_ms": waitedMs = 0, "time/step_ms": stepMs = 0 } = metrics.toRecord();
  if (stepMs > 0) metrics.add("idle/trainer", Reduction.last, waitedMs / stepMs);
  if (engines !== undefined) metrics.add("idle/engines", Reduction.last, engines);
}

/** Adds how old the step's tokens are, in versions, and what became of the groups that it did not take. */
function addStalenessMetrics(
  metrics: MetricSet,
  step: number,
  trained: readonly ScoredRollout[],
  { tooOldCount, aheadCount, openCount, waitingCount }: AsynchronousPart,
): void {
  metrics.add("groups/ahead", Reduction.last, aheadCount);
  metrics.add("groups/too_old", Reduction.sum, tooOldCount);
  metrics.add("groups/open", Reduction.last, openCount);
  metrics.add("rollouts/waiting", Reduction.last, waitingCount);
  addStaleness(metrics, step - 1, trained);
}

/** Adds `time/<name>_ms`. */
function addTimes(metrics: MetricSet, times: Readonly<Record<string, number>>): void {
  for (const [name, ms] of Object.entries(times)) {
    metrics.add(`time/${name}_ms`, Reduction.sum, ms);
    countStepPhase(name, ms);
  }
}
