/** Stores pieces of traces, as they came. */

import { type Database, query } from "@hone/storage";
import type { TracePiece } from "../domain/otlp/split-by-trace.ts";
import { spanPieces } from "./schema.ts";

/** Writes all of them or none. */
export async function writeSpans(database: Database, pieces: readonly TracePiece[]): Promise<void> {
  await query(database, (db) => db.insert(spanPieces).values([...pieces]), { action: "store spans" });
}
