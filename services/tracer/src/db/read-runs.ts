/** Reads runs and their metrics. */

import { and, asc, type Database, desc, eq, gt, inArray, query, sql } from "@hone/storage";
import type { CurvePoint } from "../domain/ports.ts";
import { READ_DEADLINE_MS } from "./read-deadline.ts";
import { evaluations, refusals, removals, runs, steps } from "./schema.ts";

/** Most runs of the list; older ones can still be opened by their address. */
const MAX_RUNS = 200;
const MAX_REFUSALS = 10;
/** Most points of a run's small curve in the list. */
const MAX_CURVE_POINTS = 100;
/** Most steps of one answer; a longer run takes several. */
const MAX_STEPS = 5_000;

const READ = { isRepeatable: true, deadlineMs: READ_DEADLINE_MS } as const;

/** All columns of a run that lists need; its file is read only when a single run is. */
const summary = {
  runId: runs.runId,
  acceptedAtMs: runs.acceptedAtMs,
  phase: runs.phase,
  step: runs.step,
  totalSteps: runs.totalSteps,
  version: runs.version,
  waitingFor: runs.waitingFor,
  waitingOwner: runs.waitingOwner,
  waitingSinceMs: runs.waitingSinceMs,
  progress: runs.progress,
  troubles: runs.troubles,
  endedAtMs: runs.endedAtMs,
  endReason: runs.endReason,
  checkpoint: runs.checkpoint,
  unreadRollouts: runs.unreadRollouts,
} as const;

/** Reads runs, newest first, each with the curve of its latest steps. */
export async function readRuns(database: Database) {
  return query(
    database,
    async (db) => {
      const found = await db
        .select(summary)
        .from(runs)
        .orderBy(desc(sql`coalesce(${runs.acceptedAtMs}, 0)`), desc(runs.firstSequence), desc(runs.runId))
        .limit(MAX_RUNS);
      const curves = await readCurves(
        db,
        found.map(({ runId }) => runId),
      );
      return found.map((run) => ({ ...run, curve: curves.get(run.runId) ?? [] }));
    },
    { ...READ, action: "read runs" },
  );
}

async function readCurves(
  db: Parameters<Parameters<typeof query>[1]>[0],
  runIds: readonly string[],
): Promise<Map<string, CurvePoint[]>> {
  const curves = new Map<string, CurvePoint[]>();
  if (runIds.length === 0) return curves;
  const latest = db
    .select({
      runId: steps.runId,
      step: steps.step,
      success: sql<number | null>`(${steps.metrics} ->> 'success')::float8`.as("success"),
      reward: sql<number | null>`(${steps.metrics} ->> 'reward/mean')::float8`.as("reward"),
      newer: sql<number>`row_number() over (partition by ${steps.runId} order by ${steps.step} desc)`.as(
        "newer",
      ),
    })
    .from(steps)
    .where(inArray(steps.runId, [...runIds]))
    .as("latest");
  const rows = await db
    .select({ runId: latest.runId, step: latest.step, success: latest.success, reward: latest.reward })
    .from(latest)
    .where(sql`${latest.newer} <= ${MAX_CURVE_POINTS}`)
    .orderBy(latest.runId, latest.step);
  for (const { runId, ...point } of rows) curves.set(runId, [...(curves.get(runId) ?? []), point]);
  return curves;
}

/** Reads the latest requests that never became runs. */
export async function readRefusals(database: Database) {
  return query(
    database,
    (db) => db.select().from(refusals).orderBy(desc(refusals.requestSequence)).limit(MAX_REFUSALS),
    { ...READ, action: "read refusals" },
  );
}

/** Reads one run with its file and evaluations; undefined when it is not known. */
export async function readRun(database: Database, runId: string) {
  return query(
    database,
    async (db) => {
      const [run] = await db
        .select({ ...summary, configJson: runs.configJson })
        .from(runs)
        .where(eq(runs.runId, runId));
      if (run === undefined) return undefined;
      const evaluated = await db
        .select({
          version: evaluations.version,
          mode: evaluations.mode,
          episodes: evaluations.episodes,
          timeMs: evaluations.timeMs,
          metrics: evaluations.metrics,
        })
        .from(evaluations)
        .where(eq(evaluations.runId, runId))
        .orderBy(asc(evaluations.version), asc(evaluations.mode));
      const [removed] = await db
        .select({ rollouts: sql<number>`coalesce(sum(${removals.rollouts}), 0)::float8` })
        .from(removals)
        .where(eq(removals.runId, runId));
      return { ...run, removedRollouts: removed?.rollouts ?? 0, evaluations: evaluated };
    },
    { ...READ, action: "read a run" },
  );
}

/** Reads the completed steps after `afterStep`, in order; `hasMore` says whether there are more than the answer holds. */
export async function readSteps(database: Database, runId: string, afterStep: number) {
  const rows = await query(
    database,
    (db) =>
      db
        .select({ step: steps.step, version: steps.version, timeMs: steps.timeMs, metrics: steps.metrics })
        .from(steps)
        .where(and(eq(steps.runId, runId), gt(steps.step, afterStep)))
        .orderBy(asc(steps.step))
        .limit(MAX_STEPS + 1),
    { ...READ, action: "read steps" },
  );
  return { steps: rows.slice(0, MAX_STEPS), hasMore: rows.length > MAX_STEPS };
}

/** Reads one completed step; undefined when it is not stored. */
export async function readStep(database: Database, runId: string, step: number) {
  const [row] = await query(
    database,
    (db) =>
      db
        .select({ step: steps.step, version: steps.version, timeMs: steps.timeMs, metrics: steps.metrics })
        .from(steps)
        .where(and(eq(steps.runId, runId), eq(steps.step, step))),
    { ...READ, action: "read a step" },
  );
  return row;
}

/** Reads the revision of each run; a run whose revision has grown has changed. */
export async function readRevisions(database: Database): Promise<Map<string, number>> {
  const rows = await query(
    database,
    (db) =>
      db
        .select({ runId: runs.runId, revision: runs.revision })
        .from(runs)
        .orderBy(desc(runs.revision))
        .limit(MAX_RUNS),
    { ...READ, action: "read revisions" },
  );
  return new Map(rows.map(({ runId, revision }) => [runId, revision]));
}
