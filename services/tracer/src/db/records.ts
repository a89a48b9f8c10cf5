/**
 * Passes many rows as one parameter: a JSON array that the server turns into rows.
 *
 * Building a statement with a parameter for each column of each row takes more time than the rest of a write. The text of
 * this statement does not depend on the number of rows, so the server can also reuse its plan.
 */

import { type SQL, sql } from "@hone/storage";

/** A row source with the columns of `definition`, such as sql`name text, value integer`. */
export function recordsOf(rows: readonly object[], definition: SQL): SQL {
  return sql`jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as records(${definition})`;
}

/** Encodes bytes for JSON; `decode(…, 'base64')` in the statement decodes them. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}
