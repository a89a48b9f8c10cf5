/** Stores pieces of traces, as they came. */

import { type Database, query } from "@hone/storage";
import { sql } from "drizzle-orm";
import type { TracePiece } from "../domain/otlp/split-by-trace.ts";
import { hexOf, recordsOf } from "./records.ts";

/** Writes all of them or none. */
export async function writeSpans(database: Database, pieces: readonly TracePiece[]): Promise<void> {
  const rows = pieces.map(({ traceId, spanCount, data }) => ({ traceId, spanCount, data: hexOf(data) }));
  await query(
    database,
    (db) =>
      db.execute(sql`
        insert into span_pieces (trace_id, span_count, data)
        select "traceId", "spanCount", decode(data, 'hex')
        from ${recordsOf(rows, sql`"traceId" text, "spanCount" integer, data text`)}`),
    { action: "store spans" },
  );
}
