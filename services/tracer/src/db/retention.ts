/**
 * What is kept: the newest spans and rollouts, by count. Runs, metrics and evaluations are small and stay.
 *
 * Replicas may all do this: deleting what is gone already does nothing.
 */

import { type Database, query, sql } from "@hone/storage";

/** Most rows of each kind. */
export interface RetentionLimits {
  readonly maxSpans: number;
  readonly maxRollouts: number;
}

/** Deletes what is beyond the limits. @returns how many spans (in whole pieces) and rollouts went. */
export async function enforceRetention(
  database: Database,
  limits: RetentionLimits,
): Promise<{ spans: number; rollouts: number }> {
  const spans = await query(
    database,
    (db) =>
      db.execute<{ count: string }>(sql`
        with gone as (
          delete from span_pieces where id <= (
            select id from (
              select id, sum(span_count) over (order by id desc) as newer from span_pieces
            ) as pieces
            where newer > ${limits.maxSpans} order by id desc limit 1
          )
          returning span_count
        )
        select coalesce(sum(span_count), 0) as count from gone`),
    { action: "delete old spans" },
  );
  const rollouts = await query(
    database,
    (db) =>
      db.execute<{ count: string }>(sql`
        with gone as (
          delete from rollouts where id <= (
            select id from rollouts order by id desc offset ${limits.maxRollouts} limit 1
          )
          returning run_id, slot
        ), figures as (
          delete from trainings using gone where trainings.run_id = gone.run_id and trainings.slot = gone.slot
        )
        select count(*) as count from gone`),
    { action: "delete old rollouts" },
  );
  return { spans: Number(spans[0]?.count ?? 0), rollouts: Number(rollouts[0]?.count ?? 0) };
}
