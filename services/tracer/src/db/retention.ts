/**
 * Retention: the newest spans and rollouts are kept, limited by count and by bytes. Runs, steps and evaluations are small and
 * always stay.
 *
 * K1: to save bytes, whole steps are removed: rollouts, their training figures and their spans. Those of ended runs are removed
 *     first, beginning with the run that ended first; then the oldest steps of the other runs.
 * K2: spans that belong to no stored rollout, such as those of training steps, take at most a quarter of the bytes.
 * K3: removals are recorded for each step, and on a rollout whose spans were removed, so that views can say so.
 *
 * Bytes are those of live rows as PostgreSQL stores them, compressed where that helps. Its files shrink later or never, as their
 * space is used again. All replicas may do this at once, as deleting a row that is already deleted does nothing.
 */

import { type Database, query, type SQL, sql } from "@hone/storage";

export interface RetentionLimits {
  readonly maxSpans: number;
  readonly maxRollouts: number;
  /** Limit of rollouts and spans together. */
  readonly maxBytes: number;
}

/** How much was removed. Spans are removed in whole pieces. */
export interface Removed {
  readonly spans: number;
  readonly rollouts: number;
}

/** Bytes of a row without its large value: the other columns, its index entries, and the training figures of a rollout. */
const ROW_BYTES = 500;
/** K2 */
const UNOWNED_SHARE = 0.25;
/** Most bytes that one statement deletes, so that each takes seconds even where gigabytes must be deleted. */
const MAX_STATEMENT_BYTES = 128 * 1024 ** 2;
/** Training figures come seconds before or after their rollout. After this time the rollout was dropped (ADR 022). */
const ORPHAN_MS = 3_600_000;

const rolloutBytes = sql`pg_column_size(rollouts.scored) + coalesce(pg_column_size(rollouts.words), 0) + ${sql.raw(String(ROW_BYTES))}`;
const pieceBytes = sql`pg_column_size(span_pieces.data) + ${sql.raw(String(ROW_BYTES))}`;

/** Deletes and records what belongs to deleted rollouts; follows a `gone` that returns run_id, slot, split, step (K3). */
const withRollouts = sql`
  figures as (
    delete from trainings using gone where trainings.run_id = gone.run_id and trainings.slot = gone.slot
  ), marks as (
    insert into removals (run_id, split, step, rollouts)
    select run_id, split, step, count(*) from gone group by run_id, split, step order by run_id, split, step
    on conflict (run_id, split, step) do update set rollouts = removals.rollouts + excluded.rollouts
  )`;

/** Deletes what exceeds the limits. */
export async function enforceRetention(database: Database, limits: RetentionLimits): Promise<Removed> {
  const byCount = await enforceCounts(database, limits);
  const byBytes = await enforceBytes(database, limits.maxBytes);
  return { spans: byCount.spans + byBytes.spans, rollouts: byCount.rollouts + byBytes.rollouts };
}

async function enforceCounts(database: Database, limits: RetentionLimits): Promise<Removed> {
  const spans = await removed(
    database,
    "delete old spans",
    sql`
      with gone as (
        delete from span_pieces where id <= (
          select id from (
            select id, sum(span_count) over (order by id desc) as newer from span_pieces
          ) as pieces
          where newer > ${limits.maxSpans} order by id desc limit 1
        )
        returning span_count, trace_id
      ), marks as (
        update rollouts set spans_removed = true
        where trace_id <> '' and not spans_removed and trace_id in (select trace_id from gone)
      )
      select 0 as rollouts, coalesce(sum(span_count), 0) as spans from gone`,
  );
  const rollouts = await removed(
    database,
    "delete old rollouts",
    sql`
      with gone as (
        delete from rollouts where id <= (
          select id from rollouts order by id desc offset ${limits.maxRollouts} limit 1
        )
        returning run_id, slot, split, step
      ), ${withRollouts}
      select count(*) as rollouts, 0 as spans from gone`,
  );
  await query(
    database,
    (db) =>
      db.execute(sql`
        delete from trainings where stored_at_ms < ${Date.now() - ORPHAN_MS}::bigint and not exists (
          select from rollouts where rollouts.run_id = trainings.run_id and rollouts.slot = trainings.slot
        )`),
    { action: "delete training figures of rollouts that are not kept" },
  );
  return { spans: spans.spans, rollouts: rollouts.rollouts };
}

async function enforceBytes(database: Database, maxBytes: number): Promise<Removed> {
  const total = { spans: 0, rollouts: 0 };
  let excess = (await storedBytes(database)) - maxBytes;
  if (excess <= 0) return total;
  total.spans += (await removeUnownedSpans(database, Math.floor(maxBytes * UNOWNED_SHARE))).spans;
  excess = (await storedBytes(database)) - maxBytes;
  while (excess > 0) {
    const gone = await removeSteps(database, Math.min(excess, MAX_STATEMENT_BYTES));
    if (gone.rollouts === 0) break;
    total.spans += gone.spans;
    total.rollouts += gone.rollouts;
    excess = (await storedBytes(database)) - maxBytes;
  }
  return total;
}

/** Bytes of the rows of rollouts and spans. The large values themselves are not read for this. */
export async function storedBytes(database: Database): Promise<number> {
  const [row] = await query(
    database,
    (db) =>
      db.execute<{ bytes: string }>(sql`
        select (select coalesce(sum(${rolloutBytes}), 0) from rollouts)
          + (select coalesce(sum(${pieceBytes}), 0) from span_pieces) as bytes`),
    { action: "measure the stored rows", isRepeatable: true },
  );
  return Number(row?.bytes ?? 0);
}

/** K2 */
function removeUnownedSpans(database: Database, maxBytes: number): Promise<Removed> {
  return removed(
    database,
    "delete old spans of no rollout",
    sql`
      with unowned as (
        select id, sum(${pieceBytes}) over (order by id desc) as newer from span_pieces
        where not exists (select from rollouts where rollouts.trace_id = span_pieces.trace_id)
      ), gone as (
        delete from span_pieces where id in (select id from unowned where newer > ${maxBytes}) returning span_count
      )
      select 0 as rollouts, coalesce(sum(span_count), 0) as spans from gone`,
  );
}

/** K1: removes steps until they make up `bytes`. */
function removeSteps(database: Database, bytes: number): Promise<Removed> {
  return removed(
    database,
    "delete the rollouts of old steps",
    sql`
      with traces as (
        select trace_id, sum(${pieceBytes}) as bytes from span_pieces group by trace_id
      ), sized as (
        select run_id, split, step, min(rollouts.id) as first_id,
          sum(${rolloutBytes} + coalesce(traces.bytes, 0)) as bytes
        from rollouts left join traces on traces.trace_id = rollouts.trace_id
        group by run_id, split, step
      ), ordered as (
        select sized.run_id, split, sized.step,
          sum(bytes) over (order by ended_at_ms nulls last, first_id) - bytes as before
        from sized left join runs on runs.run_id = sized.run_id
      ), gone as (
        delete from rollouts using ordered
        where before < ${bytes}::bigint and rollouts.run_id = ordered.run_id
          and rollouts.split = ordered.split and rollouts.step = ordered.step
        returning rollouts.run_id, rollouts.slot, rollouts.split, rollouts.step, rollouts.trace_id
      ), ${withRollouts}, pieces as (
        delete from span_pieces where trace_id in (select trace_id from gone where trace_id <> '')
        returning span_count
      )
      select (select count(*) from gone) as rollouts, (select coalesce(sum(span_count), 0) from pieces) as spans`,
  );
}

async function removed(database: Database, action: string, statement: SQL): Promise<Removed> {
  const [row] = await query(database, (db) => db.execute<{ rollouts: string; spans: string }>(statement), {
    action,
  });
  return { spans: Number(row?.spans ?? 0), rollouts: Number(row?.rollouts ?? 0) };
}
