/** The rows of a file as episodes: what was asked, and one answer of a model. */

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Outcome, parseJson } from "@hone/core";
import { judgedRowOf } from "@hone/judge/scoring";
import { UsageError } from "../errors.ts";
import type { Scorable } from "./score-all.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads JSON Lines: the columns of a dataset row, and the answer in the column `field`.
 * @throws {UsageError} naming the line that is something else.
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
        const rule = row === undefined ? "be a JSON object" : `hold the answer as a text in "${field}"`;
        throw new UsageError(
          `Cannot judge ${file} as each line must ${rule}: current value on line ${line} is ${text.slice(0, 120)}`,
        );
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
    turns: [{ promptText, responseText: solution, finishReason: "stop", info: {} }],
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
