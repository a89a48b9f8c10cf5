/** Makes episodes of the rows of a file: what was asked, and one answer of a model. */

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Outcome, parseJson } from "@hone/core";
import { judgedRowOf } from "@hone/judge/scoring";
import { FinishReason } from "@hone/rl";
import { UsageError } from "../errors.ts";
import type { Scorable } from "./score-all.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads JSON Lines with the columns of a dataset row, and the answer in the column `field`.
 * @throws {UsageError} that names the line that is not such a row.
 */
export async function* fileEpisodes(file: string, field: string): AsyncGenerator<Scorable<JsonObject>> {
  const stream = createReadStream(file, "utf8");
  let line = 0;
  try {
    for await (const text of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++;
      if (text.trim() === "") continue;
      const row = objectOf(text);
      const solution = row?.[field];
      if (row === undefined || typeof solution !== "string") {
        const problem = row === undefined ? "is not a JSON object" : `has no text in "${field}"`;
        throw new UsageError(`line ${line} of ${file} ${problem}: ${text.slice(0, 120)}`);
      }
      yield { key: row, episode: episodeOf(row, solution) };
    }
  } finally {
    stream.destroy();
  }
}

function episodeOf(row: JsonObject, solution: string): Scorable<JsonObject>["episode"] {
  const { prompt, metadata } = row;
  const promptText = typeof prompt === "string" ? prompt : JSON.stringify(prompt ?? "");
  return {
    outcome: Outcome.completed,
    environmentReturn: 0,
    roleRewards: {},
    turns: [{ promptText, responseText: solution, finishReason: FinishReason.stop, info: {} }],
    row: judgedRowOf(row),
    metadata: isObject(metadata) ? metadata : {},
  };
}

function objectOf(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
