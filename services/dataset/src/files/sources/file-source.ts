/** A source whose tasks are the rows of files, one file after the other. */

import type { Task, TaskSource } from "../../domain/task.ts";
import { SourceError } from "../../errors.ts";
import type { JsonlFile } from "../jsonl-file.ts";

/** @throws {SourceError} when the files have no rows. */
export function fileSource(files: readonly JsonlFile[]): TaskSource {
  const starts = files.map((_, index) => files.slice(0, index).reduce((sum, { size }) => sum + size, 0));
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size === 0) {
    const dropped = files.reduce((sum, file) => sum + file.dropped, 0);
    const why = dropped === 0 ? "" : ` (the filter leaves out all ${dropped})`;
    throw new SourceError(
      `${files.map(({ name }) => name).join(", ")} has 0 rows${why}; give a file with at least one row`,
      { path: "path", allowed: "a file with at least one row" },
    );
  }
  return {
    size,
    async read(elements) {
      const tasks = new Map<number, Task>();
      for (const [index, file] of files.entries()) {
        const start = starts[index]!;
        const own = elements.filter((element) => element >= start && element < start + file.size);
        if (own.length === 0) continue;
        const rows = await file.read(own.map((element) => element - start));
        for (const [at, { line, json }] of rows.entries()) {
          tasks.set(own[at]!, { kind: "row", id: `${file.name}:${line}`, rowJson: json });
        }
      }
      return elements.map((element) => tasks.get(element)!);
    },
  };
}
