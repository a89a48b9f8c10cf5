/** Reads rollouts. */

import { and, asc, type Database, eq, query, sql } from "@hone/storage";
import { READ_DEADLINE_MS } from "../read-deadline.ts";
import { removals, rollouts, trainings } from "../schema.ts";

const READ = { isRepeatable: true, deadlineMs: READ_DEADLINE_MS } as const;

/** The columns of a list. */
export const rolloutRow = {
  id: rollouts.id,
  runId: rollouts.runId,
  slot: rollouts.slot,
  split: rollouts.split,
  step: rollouts.step,
  task: rollouts.task,
  index: rollouts.index,
  attempt: rollouts.attempt,
  outcome: rollouts.outcome,
  reason: rollouts.reason,
  reward: rollouts.reward,
  success: rollouts.success,
  turns: rollouts.turns,
  sampledTokens: rollouts.sampledTokens,
  totalTokens: rollouts.totalTokens,
  durationMs: rollouts.durationMs,
  taskId: rollouts.taskId,
  traceId: rollouts.traceId,
  storedAtMs: rollouts.storedAtMs,
  advantage: trainings.advantage,
  notes: sql<number>`(
    select count(*)::int from notes where notes.run_id = rollouts.run_id and notes.slot = rollouts.slot
  )`,
} as const;

export const sameRollout = and(eq(trainings.runId, rollouts.runId), eq(trainings.slot, rollouts.slot));

/** Counts the rollouts of each split and outcome. */
export async function readRolloutCounts(database: Database, runId: string) {
  return query(
    database,
    (db) =>
      db
        .select({
          split: rollouts.split,
          outcome: rollouts.outcome,
          count: sql<number>`count(*)::int`,
          lastStep: sql<number>`max(${rollouts.step})::int`,
        })
        .from(rollouts)
        .where(eq(rollouts.runId, runId))
        .groupBy(rollouts.split, rollouts.outcome)
        .orderBy(rollouts.split, rollouts.outcome),
    { ...READ, action: "count rollouts" },
  );
}

/** Reads one rollout, with its bytes and the others of its group; undefined when it is not stored. */
export async function readRollout(database: Database, runId: string, slot: string) {
  return query(
    database,
    async (db) => {
      const [found] = await db
        .select({
          ...rolloutRow,
          figures: trainings.figures,
          spansRemoved: rollouts.spansRemoved,
          scored: rollouts.scored,
        })
        .from(rollouts)
        .leftJoin(trainings, sameRollout)
        .where(and(eq(rollouts.runId, runId), eq(rollouts.slot, slot)));
      if (found === undefined) return undefined;
      const group = await db
        .select({
          slot: rollouts.slot,
          index: rollouts.index,
          reward: rollouts.reward,
          outcome: rollouts.outcome,
          advantage: trainings.advantage,
        })
        .from(rollouts)
        .leftJoin(trainings, sameRollout)
        .where(
          and(
            eq(rollouts.runId, runId),
            eq(rollouts.split, found.split),
            eq(rollouts.step, found.step),
            eq(rollouts.task, found.task),
          ),
        )
        .orderBy(asc(rollouts.index));
      return { ...found, group };
    },
    { ...READ, action: "read a rollout" },
  );
}

/** Whether retention removed rollouts of a step. */
export async function areRolloutsRemoved(
  database: Database,
  runId: string,
  split: string,
  step: number,
): Promise<boolean> {
  const rows = await query(
    database,
    (db) =>
      db
        .select({ rollouts: removals.rollouts })
        .from(removals)
        .where(and(eq(removals.runId, runId), eq(removals.split, split), eq(removals.step, step))),
    { ...READ, action: "look for removed rollouts" },
  );
  return rows.length > 0;
}
