/** Plays the groups of a step of an asynchronous run, by the rules of open-groups.ts. */

import { groupKey, Outcome, type Slot, Split } from "@hone/core";
import { playsBaseline, versionRange } from "@hone/rl";
import { type Context, SpanName, withSpan } from "@hone/telemetry";
import { compareGroups } from "../credit/compare-groups.ts";
import { OwnershipLostError } from "../errors.ts";
import { reportTroubles } from "../report/troubles.ts";
import { WaitOwner } from "../report/wait.ts";
import type { Job } from "../rollouts/jobs.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { CompleteGroup, TakenGroup } from "../step/ledger.ts";
import { stepFigures } from "../step/step-figures.ts";
import { nextAhead } from "./groups-ahead.ts";
import type { OpenGroup, OpenGroups } from "./open-groups.ts";
import { groupsOf, type PlayContext, type PlayedGroups, prepareGroups, rolloutsOf } from "./played-groups.ts";

type OpenContext = PlayContext & Pick<RunContext, "ledger" | "inbox"> & { readonly openGroups: OpenGroups };

/**
 * @param parent the step's span.
 * @throws {UniformFailureError} if all rollouts failed for one reason and the run file does not allow that.
 */
export async function playOpenGroups(
  context: OpenContext,
  step: number,
  parent: Context,
): Promise<PlayedGroups> {
  const { run, openGroups, tasks, gatherer, inbox } = context;
  const { tasksPerStep, groupSize } = run.config.rollout;
  let tooOldCount = 0;
  let numPassedOver = 0;
  await gatherer.catchUp(); // A5
  // Groups that an earlier owner of the run asked for.
  const { unknown } = openGroups;
  const contents = await tasks.at(unknown.map(({ cursor }) => cursor));
  openGroups.know(unknown.map((group, i) => ({ ...group, content: contents[i]! })));
  const aheadCount = await groupsAhead(context, step);
  for (;;) {
    const asked = await withSpan(SpanName.stepBatch, { parent }, () => askGroups(context, step, aheadCount));
    tooOldCount += asked.tooOldCount;
    numPassedOver += asked.numPassedOver;
    const gathered = await withSpan(SpanName.stepRollouts, { parent }, () => gatherFirst(context, step));
    const taken = byCompletion(gathered);
    if (taken.length < tasksPerStep) {
      openGroups.decidedAt = positionOfShortage(context, step); // Others are asked for in place of those that are too old.
      continue;
    }
    const versions = { lowest: oldestVersion(run, step), highest: step - 1 };
    const { rollouts, baselines } = prepareGroups(context, gathered, versions);
    const partOf = (slot: Slot) => openGroups.at(slot).content.part;
    const groups = groupsOf(groupSize, await compareGroups(context, rollouts, partOf), baselines);
    const played = groups.map((group, task) => ({ ...group, task }));
    const troubles = reportTroubles(context, `step ${step}`, rolloutsOf(played));
    return {
      played,
      trained: played,
      surplusCount: 0,
      unneededCount: 0,
      batchCount: 1,
      tasks: played.map(({ rollouts }) => openGroups.at(rollouts[0]!.slot).content),
      nextCursor: openGroups.nextCursor,
      numPassedOver,
      troubles,
      asynchronous: {
        taken,
        tooOldCount,
        aheadCount,
        openCount: openGroups.size - taken.length,
        waitingCount: inbox.size,
      },
    };
  }
}

/** @returns how many groups are played beyond those of a step (groups-ahead.ts). */
async function groupsAhead(context: OpenContext, step: number): Promise<number> {
  const { config } = context.run;
  if (config.trainer.maxStaleness === 1 || step <= 2) return config.rollout.tasksPerStep; // H1
  return nextAhead(config, await stepFigures(context, step - 1)); // H4
}

/** @returns the number of open groups whose rollouts are all there, and which a step may train; those that a step took are not there. */
export function countReady(
  { run, openGroups, inbox }: Pick<OpenContext, "run" | "openGroups" | "inbox">,
  step: number,
): number {
  const isTooOld = tooOldFor(run, step);
  const ready = openGroups.known.filter((group) => {
    const arrived = inbox.arrived(slotsOf(run, group));
    return arrived.length === rolloutsPerGroup(run) && !arrived.some(isTooOld);
  });
  return ready.length;
}

/**
 * Gives up the groups that have grown too old, and asks for as many as there is room for (A1, A3, A4).
 * @param ahead groups beyond those of the step.
 */
async function askGroups(
  { run, openGroups, tasks, ledger, inbox, reporter, gatherer }: OpenContext,
  step: number,
  ahead: number,
): Promise<{ tooOldCount: number; numPassedOver: number }> {
  const isTooOld = tooOldFor(run, step);
  const isKnown = (rollout: ScoredRollout) => rollout.sequence <= openGroups.decidedAt; // A5
  const givenUp = openGroups.known.filter((group) =>
    inbox.arrived(slotsOf(run, group)).some((rollout) => isKnown(rollout) && isTooOld(rollout)),
  );
  const tooOldCount = givenUp.length;
  const count = openGroups.room(step, ahead) + tooOldCount;
  if (count === 0) return { tooOldCount, numPassedOver: 0 };
  const fresh = await tasks.next(openGroups.nextCursor, count - tooOldCount);
  const contents = [
    ...givenUp.map(({ cursor, content }) => ({ cursor, content })),
    ...fresh.tasks.map((content, i) => ({ cursor: fresh.cursors[i]!, content })),
  ];
  const first = openGroups.nextTask(step);
  const asked = contents.map((each, i): OpenGroup => ({ ...each, step, task: first + i }));
  const { nextCursor, numPassedOver } = fresh;
  const isOurs = await reporter.untilAvailable(
    { text: "the database (groups to play)", owner: WaitOwner.database },
    () => ledger.askGroups({ runId: run.runId, epoch: run.epoch, step, asked, givenUp, nextCursor }),
  );
  if (!isOurs) throw new OwnershipLostError(run.runId, run.epoch);
  openGroups.replace(givenUp, asked, nextCursor);
  gatherer.giveUp(givenUp.flatMap((group) => slotsOf(run, group)));
  return { tooOldCount, numPassedOver };
}

/** Waits for the groups of a step. @returns their rollouts in the order of their slots (A2). */
async function gatherFirst(
  { run, openGroups, gatherer, deadlines, reporter }: OpenContext,
  step: number,
): Promise<ScoredRollout[]> {
  const { tasksPerStep } = run.config.rollout;
  const jobs: Job[] = [];
  for (const group of openGroups.known) jobs.push(...jobsOf(run, group, await deadlines.of(group.step)));
  return gatherer.gather(
    `step ${step}`,
    jobs,
    (rolloutsDone, rolloutsTotal) => reporter.progress({ step, rolloutsDone, rolloutsTotal }),
    {
      groups: tasksPerStep,
      rollouts: rolloutsPerGroup(run),
      isTooOld: tooOldFor(run, step),
      keepsOthers: true,
    },
  );
}

/** A3 */
function oldestVersion({ config }: Pick<RunRecord, "config">, step: number): number {
  return step - 1 - config.trainer.maxStaleness;
}

/** @returns whether a step must not train a rollout any more (A3). */
function tooOldFor(run: RunRecord, step: number): (rollout: ScoredRollout) => boolean {
  const oldest = oldestVersion(run, step);
  return (rollout) => rollout.outcome === Outcome.stale || (versionRange(rollout)?.lowest ?? oldest) < oldest;
}

/** A group is complete with its last rollout in the stream (A2). @returns the groups in this order. */
function byCompletion(gathered: readonly ScoredRollout[]): CompleteGroup[] {
  const groups = Map.groupBy(gathered, ({ slot }) => groupKey(slot)).values();
  return [...groups]
    .map((rollouts) => ({
      step: rollouts[0]!.slot.step,
      task: rollouts[0]!.slot.task,
      completeAt: Math.max(...rollouts.map(({ sequence }) => sequence)),
    }))
    .sort((a, b) => a.completeAt - b.completeAt);
}

/** @returns the position in the stream from which so many groups were too old that too few others were left (A5). */
function positionOfShortage({ run, openGroups, inbox }: OpenContext, step: number): number {
  const isTooOld = tooOldFor(run, step);
  const positions = openGroups.known.flatMap((group) => {
    const [first] = inbox
      .arrived(slotsOf(run, group))
      .filter(isTooOld)
      .map(({ sequence }) => sequence)
      .sort((a, b) => a - b);
    return first ?? [];
  });
  const spare = openGroups.size - run.config.rollout.tasksPerStep;
  return positions.sort((a, b) => a - b)[spare] ?? openGroups.decidedAt;
}

function rolloutsPerGroup({ config }: Pick<RunRecord, "config">): number {
  return config.rollout.groupSize + Number(playsBaseline(config.algorithm.advantage));
}

function slotsOf(run: RunRecord, { step, task }: TakenGroup): Slot[] {
  return Array.from({ length: rolloutsPerGroup(run) }, (_, index) => ({
    split: Split.train,
    step,
    task,
    index,
  }));
}

/** @param deadlineMs of an attempt; undefined = that of the run file. */
function jobsOf(run: RunRecord, group: OpenGroup, deadlineMs: number | undefined): Job[] {
  const { rollout, trainer } = run.config;
  const { sampling, groupSize } = rollout;
  return slotsOf(run, group).map((slot) => ({
    slot,
    task: group.content,
    cursor: group.cursor,
    sampling: slot.index === groupSize ? { ...sampling, temperature: 0 } : sampling,
    ...(deadlineMs !== undefined && { deadlineMs }),
    lowestVersion: group.step - 1,
    highestVersion: trainer.steps,
    maxStaleness: trainer.maxStaleness,
    onNewVersion: trainer.onNewVersion,
  }));
}
