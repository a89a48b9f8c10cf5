/** Tasks that are the rows of a JSON Lines file. */

import type { Task, TaskSource } from "../domain/task.ts";
import { SourceError } from "../errors.ts";
import type { JsonlFile } from "./jsonl-file.ts";

/** @throws {SourceError} when the file has no row. */
export function jsonlSource(file: JsonlFile): TaskSource {
  if (file.size === 0) {
    throw new SourceError(`Cannot make tasks as ${file.name} must hold rows: current value is 0 rows`, {
      path: "path",
      allowed: "a file with at least one row",
    });
  }
  return {
    size: file.size,
    async read(elements) {
      const rows = await file.read(elements);
      return rows.map((row): Task => ({ kind: "row", id: `${file.name}:${row.line}`, rowJson: row.json }));
    },
  };
}
