/** Reads traces. */

import { Split } from "@hone/core";
import { asc, type Database, eq, query, sql } from "@hone/storage";
import type { StepSpans } from "../domain/ports.ts";
import { READ_DEADLINE_MS } from "./read-deadline.ts";
import { spanPieces } from "./schema.ts";

/** A trace of a rollout has a handful of pieces; this limits what a hostile trace may cost. */
const MAX_PIECES = 2_000;
/** What the timeline of a step may cost: reading the times of so many bytes takes some tenths of a second. */
const MAX_STEP_BYTES = 32 * 1024 * 1024;
const MAX_STEP_ROLLOUTS = 2_048;

/** Reads the pieces of a trace in the order in which they came. */
export async function readPieces(database: Database, traceId: string): Promise<Uint8Array[]> {
  const rows = await query(
    database,
    (db) =>
      db
        .select({ data: spanPieces.data })
        .from(spanPieces)
        .where(eq(spanPieces.traceId, traceId))
        .orderBy(asc(spanPieces.id))
        .limit(MAX_PIECES),
    { isRepeatable: true, deadlineMs: READ_DEADLINE_MS, action: "read a trace" },
  );
  return rows.map(({ data }) => data);
}

/**
 * Reads the spans of the rollouts that may have been under way in a step: those that the step or an earlier one asked for, and
 * that were stored after it began. At most {@link MAX_STEP_ROLLOUTS} rollouts and {@link MAX_STEP_BYTES}, the latest first.
 */
export async function readStepSpans(
  database: Database,
  runId: string,
  step: number,
  beganAtMs: number,
): Promise<StepSpans> {
  const underWay = sql`run_id = ${runId} and split = ${Split.train} and step <= ${step}
    and stored_at_ms >= ${Math.floor(beganAtMs)}`;
  return query(
    database,
    async (db) => {
      const [counted] = await db.execute<{ total: number }>(
        sql`select count(*)::int as total from rollouts where ${underWay}`,
      );
      const rows = await db.execute<{ trace_id: string; data: Uint8Array }>(sql`
        select trace_id, data from (
          select p.trace_id, p.data,
            sum(octet_length(p.data)) over (order by r.step desc, r.task, r.index, p.id) as bytes
          from (
            select trace_id, step, task, index from rollouts where ${underWay} and trace_id <> ''
            order by step desc, task, index limit ${MAX_STEP_ROLLOUTS}
          ) as r join span_pieces as p on p.trace_id = r.trace_id
        ) as pieces where bytes <= ${MAX_STEP_BYTES}`);
      return {
        pieces: rows.map(({ data }) => data),
        drawn: new Set(rows.map(({ trace_id: traceId }) => traceId)).size,
        total: counted?.total ?? 0,
      };
    },
    { isRepeatable: true, deadlineMs: READ_DEADLINE_MS, action: "read the spans of a step" },
  );
}

/** Whether spans were ever removed. If so, the first row that was stored is missing. */
export async function areSpansRemoved(database: Database): Promise<boolean> {
  const [first] = await query(
    database,
    (db) =>
      db.execute<{ is_removed: boolean }>(sql`
        select (select is_called from span_pieces_id_seq)
          and coalesce((select min(id) from span_pieces) > 1, true) as is_removed`),
    { isRepeatable: true, deadlineMs: READ_DEADLINE_MS, action: "look for removed spans" },
  );
  return first?.is_removed ?? false;
}
