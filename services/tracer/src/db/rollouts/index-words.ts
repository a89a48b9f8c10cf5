/**
 * Adds the words of rollouts that a release without the search stored, some at a time and the newest first, so that neither
 * the database nor a large table waits. What is stored since has its words from the beginning.
 */

import { fromBinary } from "@bufbuild/protobuf";
import { pause } from "@hone/core";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { type Database, query, sql } from "@hone/storage";
import type { Logger } from "@hone/telemetry";
import { NO_WORDS, type RolloutWords, rolloutWordsOf } from "../../domain/search/rollout-texts.ts";
import { recordsOf } from "../records.ts";
import { wordColumns, wordVector } from "./write-rollouts.ts";

/** Some megabytes of long episodes. */
const BATCH = 64;
/** Leaves most of the time to what else is written. */
const PAUSE_MS = 100;
const RETRY_MS = 10_000;

/** Ends when all rollouts have their words, or the signal aborts. */
export async function indexWords(database: Database, logger: Logger, signal: AbortSignal): Promise<void> {
  let below = Number.MAX_SAFE_INTEGER;
  let added = 0;
  while (!signal.aborted) {
    try {
      const ids = await indexBatch(database, below);
      const last = ids.at(-1);
      if (last === undefined) break;
      below = last;
      added += ids.length;
    } catch (error) {
      logger.warn("the words of stored rollouts could not be added, and are tried again", { error });
      await pause(RETRY_MS, signal);
    }
    await pause(PAUSE_MS, signal);
  }
  if (added > 0) logger.info("rollouts that were stored before can be searched now", { rollouts: added });
}

/** @returns the ids that were looked at, in descending order. */
async function indexBatch(database: Database, below: number): Promise<number[]> {
  return query(
    database,
    async (db) => {
      const rows = await db.execute<{ id: string; scored: Uint8Array }>(sql`
        select id, scored from rollouts where words is null and id < ${below} order by id desc limit ${BATCH}`);
      const records = rows.map(({ id, scored }) => ({ id: Number(id), ...wordsIn(scored) }));
      if (records.length > 0) {
        await db.execute(sql`
          update rollouts set words = ${wordVector}
          from ${recordsOf(records, sql`id bigint, ${wordColumns}`)} where rollouts.id = records.id and words is null`);
      }
      return records.map(({ id }) => id);
    },
    { action: "add the words of rollouts" },
  );
}

function wordsIn(bytes: Uint8Array): RolloutWords {
  const scored = fromBinary(ScoredEpisodeSchema, bytes);
  return scored.episode === undefined ? NO_WORDS : rolloutWordsOf(scored, scored.episode);
}
