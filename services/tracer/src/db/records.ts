/**
 * Many rows as one parameter: a JSON array that the server turns into rows.
 *
 * A statement with a parameter per column and row costs more time here, in building it, than the rest of a write; this one is
 * the same text however many rows there are, so the server keeps its plan too.
 */

import { type SQL, sql } from "@hone/storage";

/** A row source with the columns of `definition`, such as sql`name text, value integer`. */
export function recordsOf(rows: readonly object[], definition: SQL): SQL {
  return sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as records(${definition})`;
}

/** Bytes as JSON can carry them; `decode(…, 'base64')` in the statement makes them bytes again. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}
