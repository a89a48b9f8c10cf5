/**
 * Plays the groups of a step of a synchronous run: gets tasks, publishes their jobs, gathers the rollouts, and asks the judges
 * that compare groups.
 *
 * P1: Without dynamic sampling a step plays one batch of tasks and trains all of its groups.
 * P2: With it, batch follows batch until enough groups teach; the step trains the first of those, in the order of their tasks.
 *     If the run starts more than it needs, the groups and rollouts that finish first count (see first-groups.ts).
 * P3: Which tasks are played and which groups are trained depends only on the results of earlier tasks and, with redundancy, on
 *     the order of the stored stream: a step that is started again after a crash asks for the same rollouts and trains the same
 *     groups.
 */

import { groupKey, type Slot, Split } from "@hone/core";
import { groupsThatTeach, nextBatchSize, playsBaseline } from "@hone/rl";
import { type Context, SpanName, withSpan } from "@hone/telemetry";
import { compareGroups } from "../credit/compare-groups.ts";
import { reportTroubles } from "../report/troubles.ts";
import { batchSlots } from "../rollouts/batch-slots.ts";
import type { ChosenTasks } from "../rollouts/curriculum.ts";
import type { Job, Task } from "../rollouts/jobs.ts";
import type { RunContext } from "../run/run-context.ts";
import {
  groupsOf,
  type PlayContext,
  type PlayedGroups,
  prepareGroups,
  rolloutsOf,
  type StepGroup,
} from "./played-groups.ts";

/**
 * @param parent the step's span.
 * @throws {UniformFailureError} if all rollouts failed for one reason and the run file does not allow that.
 */
export async function playGroups(context: PlayContext, step: number, parent: Context): Promise<PlayedGroups> {
  const { run, tasks } = context;
  const { algorithm, rollout, trainer } = run.config;
  const { dynamicSampling } = algorithm;
  const spareTasks = rollout.redundancy?.tasks ?? 0;
  const rules = { outcomes: algorithm.outcomes, passReward: trainer.eval.passReward };
  let batch = await withSpan(SpanName.stepBatch, { parent }, () => tasks.step(step));
  const asked: Task[] = [];
  let unneededCount = 0;
  let numPassedOver = 0;
  let played: readonly StepGroup[] = [];
  for (let batchCount = 1; ; batchCount++) {
    const jobs = await jobsOf(context, step, batch, asked.length);
    asked.push(...batch.tasks);
    numPassedOver += batch.numPassedOver;
    const wanted = batch.tasks.length - spareTasks;
    const groups = await withSpan(SpanName.stepRollouts, { parent }, () =>
      gatherGroups(context, step, jobs, { wanted, before: rolloutsOf(played).length }),
    );
    played = [...played, ...groups];
    unneededCount += jobs.trained.length - wanted * rollout.groupSize;
    const troubles = reportTroubles(context, `step ${step}`, rolloutsOf(played));
    const { nextCursor } = batch;
    const result = { played, unneededCount, batchCount, tasks: asked, nextCursor, numPassedOver, troubles };
    if (dynamicSampling === undefined) return { ...result, trained: played, surplusCount: 0 }; // P1
    const teaching = groupsThatTeach(played, dynamicSampling, rules);
    const size = nextBatchSize(rollout.tasksPerStep, teaching.length, played.length);
    if (size === 0 || batchCount === dynamicSampling.maxBatches) {
      const trained = teaching.slice(0, rollout.tasksPerStep); // P2
      return { ...result, trained, surplusCount: teaching.length - trained.length };
    }
    batch = await withSpan(SpanName.stepBatch, { parent }, () => tasks.next(nextCursor, size + spareTasks));
  }
}

/** The jobs of a batch: those that may be trained, and one for each task that is only compared with, where the advantage wants it. */
interface BatchJobs {
  readonly trained: readonly Job[];
  readonly baselines: readonly Job[];
}

/** @param firstTask index of the batch's first task within the step. */
async function jobsOf(
  { run, deadlines }: Pick<RunContext, "run" | "deadlines">,
  step: number,
  batch: ChosenTasks,
  firstTask: number,
): Promise<BatchJobs> {
  const { rollout, algorithm } = run.config;
  const { groupSize, redundancy, sampling } = rollout;
  const deadlineMs = await deadlines.of(step);
  const jobOf = (slot: Slot, chosen: Job["sampling"]): Job => ({
    slot,
    task: batch.tasks[slot.task - firstTask]!,
    cursor: batch.cursors[slot.task - firstTask]!,
    sampling: chosen,
    ...(deadlineMs !== undefined && { deadlineMs }),
    lowestVersion: step - 1,
    highestVersion: step - 1,
    // Once the next version is published, nothing needs the rollouts that others finished before.
    ...(redundancy !== undefined && { maxStaleness: 0 }),
  });
  const startedPerGroup = groupSize + (redundancy?.rollouts ?? 0);
  const slots = batchSlots(Split.train, step, batch.tasks.length, startedPerGroup, firstTask);
  const baselines = playsBaseline(algorithm.advantage)
    ? batch.tasks.map((_, i) => ({ split: Split.train, step, task: firstTask + i, index: groupSize }))
    : [];
  return {
    trained: slots.map((slot) => jobOf(slot, sampling)),
    baselines: baselines.map((slot) => jobOf(slot, { ...sampling, temperature: 0 })),
  };
}

/**
 * @param wanted number of groups that are waited for.
 * @param before number of the step's rollouts that were gathered before.
 */
async function gatherGroups(
  context: PlayContext,
  step: number,
  { trained, baselines }: BatchJobs,
  { wanted, before }: { wanted: number; before: number },
): Promise<StepGroup[]> {
  const { gatherer, reporter, run } = context;
  const { groupSize, redundancy } = run.config.rollout;
  const gathered = await gatherer.gather(
    `step ${step}`,
    [...trained, ...baselines],
    (done, total) => reporter.progress({ step, rolloutsDone: before + done, rolloutsTotal: before + total }),
    redundancy && { groups: wanted, rollouts: groupSize },
  );
  const ready = prepareGroups(context, gathered, { lowest: step - 1, highest: step - 1 });
  const parts = new Map(trained.map(({ slot, task }) => [groupKey(slot), task.part]));
  const partOf = (slot: Slot) => parts.get(groupKey(slot)) ?? "";
  return groupsOf(groupSize, await compareGroups(context, ready.rollouts, partOf), ready.baselines);
}
