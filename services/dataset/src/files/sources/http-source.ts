/**
 * A source whose tasks come from a server:
 *
 *     GET  <url>                             -> { "size": 1000 }
 *     POST <url>  { "elements": [7, 3] }     -> { "rows": [{…}, {…}] }
 *
 * Rows are numbered from 0, and a number must always give the same row: a run that is resumed asks for the same rows again.
 */

import { z } from "zod";
import type { Task, TaskSource } from "../../domain/task.ts";
import { MAX_BATCH_BYTES } from "../jsonl-file.ts";
import { askTaskServer, refusal } from "./ask-task-server.ts";

export interface HttpSourceOptions {
  readonly url: string;
  /** The bearer token; undefined = none is sent. */
  readonly key: string | undefined;
}

const sizeSchema = z.looseObject({ size: z.int().min(1).max(Number.MAX_SAFE_INTEGER) });
const rowsSchema = z.looseObject({ rows: z.array(z.record(z.string(), z.unknown())) });

/** @throws {SourceError | RetryableError} when the server does not give its size. */
export async function httpSource(options: HttpSourceOptions): Promise<TaskSource> {
  const { url } = options;
  const server = { ...options, maxAnswerBytes: MAX_BATCH_BYTES };
  const { size } = await askTaskServer(server, undefined, sizeSchema, '{ "size": number of rows }');
  const name = new URL(url).host;
  return {
    size,
    async read(elements) {
      const { rows } = await askTaskServer(
        server,
        { elements },
        rowsSchema,
        '{ "rows": [one object a row] }',
      );
      if (rows.length !== elements.length) {
        throw refusal(url, `the ${elements.length} rows that it was asked for`, `${rows.length} rows`);
      }
      return rows.map(
        (row, index): Task => ({
          kind: "row",
          id: `${name}:${elements[index]}`,
          rowJson: JSON.stringify(row),
        }),
      );
    },
  };
}
