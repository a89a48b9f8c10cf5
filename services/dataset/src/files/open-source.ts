/** From what a run file says to a source that can be read. */

import { unreachable } from "@hone/core";
import { environmentSource } from "../domain/environment-source.ts";
import type { SourceSpec } from "../domain/source-spec.ts";
import type { TaskSource } from "../domain/task.ts";
import type { JsonlFiles } from "./jsonl-files.ts";
import { jsonlSource } from "./jsonl-source.ts";

/** @throws {SourceError} when the source is empty or cannot be read. */
export async function openSource(spec: SourceSpec, files: JsonlFiles): Promise<TaskSource> {
  switch (spec.source) {
    case "environment":
      return environmentSource(spec);
    case "jsonl":
      return jsonlSource(await files.open(spec.path));
    default:
      return unreachable(spec);
  }
}
