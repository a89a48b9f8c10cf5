/** Reads the records of one file of a public data set: Parquet, JSON Lines, one JSON object, or a JSON list of objects. */

import { open, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { SourceError } from "../errors.ts";
import { parquetRows } from "../files/parquet/parquet-rows.ts";
import { parseRow } from "../files/parse-row.ts";
import { readLines } from "../files/read-lines.ts";
import { isParquet } from "../files/row-files.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** Largest file that is read at once, to see whether it is one JSON value. */
const MAX_VALUE_BYTES = 256 * 1024 * 1024;

/** @throws {SourceError} when the file holds something else. */
export async function* readRecords(file: string): AsyncGenerator<JsonObject> {
  if (isParquet(file)) {
    yield* parquetRows(file);
    return;
  }
  if (file.endsWith(".json")) {
    const value = await wholeValue(file);
    if (value !== undefined) {
      yield* Array.isArray(value) ? value.map((each) => objectIn(each, file)) : [objectIn(value, file)];
      return;
    }
  }
  const handle = await open(file);
  try {
    for await (const { bytes, line } of readLines(handle, file, 0, 1)) {
      yield parseRow(bytes, path.basename(file), line).value;
    }
  } finally {
    await handle.close();
  }
}

/** @returns undefined where the file is not one JSON value, as it then has one value on each line. */
async function wholeValue(file: string): Promise<unknown> {
  if ((await stat(file)).size > MAX_VALUE_BYTES) return undefined;
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function objectIn(value: unknown, file: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new SourceError(
    `${path.basename(file)} holds a record that is not a JSON object: ${JSON.stringify(value).slice(0, 80)}`,
    { path: "path", allowed: "JSON objects" },
  );
}
