/** Stores pieces of traces without decoding them. */

import { type Database, query, sql } from "@hone/storage";
import type { TracePiece } from "../domain/otlp/split-by-trace.ts";
import { base64Of, recordsOf } from "./records.ts";

/** Writes all of them or none. The pieces of one trace become one row, as concatenated protobuf messages are one message. */
export async function writeSpans(database: Database, pieces: readonly TracePiece[]): Promise<void> {
  const rows = Array.from(
    Map.groupBy(pieces, ({ traceId }) => traceId),
    ([traceId, parts]) => ({
      traceId,
      spanCount: parts.reduce((sum, { spanCount }) => sum + spanCount, 0),
      data: base64Of(parts.length === 1 ? parts[0]!.data : Buffer.concat(parts.map(({ data }) => data))),
    }),
  );
  await query(
    database,
    (db) =>
      db.execute(sql`
        insert into span_pieces (trace_id, span_count, data)
        select "traceId", "spanCount", decode(data, 'base64')
        from ${recordsOf(rows, sql`"traceId" text, "spanCount" integer, data text`)}`),
    { action: "store spans" },
  );
}
