/** Reads traces. */

import { asc, type Database, eq, query, sql } from "@hone/storage";
import { READ_DEADLINE_MS } from "./read-deadline.ts";
import { spanPieces } from "./schema.ts";

/** A trace of a rollout has a handful of pieces; this limits what a hostile trace may cost. */
const MAX_PIECES = 2_000;

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
