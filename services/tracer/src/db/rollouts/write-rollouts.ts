/**
 * Stores scored rollouts and their training figures. The first scored episode of a rollout stays, except when a failed run
 * was resumed: its rollouts are made again and replace the earlier ones.
 */

import { slotKey } from "@hone/core";
import { type Database, query, sql } from "@hone/storage";
import type { TrainFigures } from "../../domain/otlp/train-figures.ts";
import type { StoredRollout } from "../../domain/ports.ts";
import { TextPlace } from "../../domain/search/rollout-texts.ts";
import { base64Of, recordsOf } from "../records.ts";

/** The columns of the words in a row source, see `recordsOf`. */
export const wordColumns = sql`prompt text, answer text, tool text, judge text`;
/** The words as the column has them: with the weights of TextPlace. */
export const wordVector = sql.join(
  Object.entries(TextPlace).map(
    ([place, weight]) =>
      sql`setweight(to_tsvector('simple', ${sql.identifier(place)}), ${sql.raw(`'${weight}'`)})`,
  ),
  sql` || `,
);

/** Writes all of them or none. */
export async function writeRollouts(database: Database, items: readonly StoredRollout[]): Promise<void> {
  const rows = latestOf(items).map(({ record, traceId, scored }) => {
    const { slot, words, ...columns } = record;
    return { ...columns, ...slot, ...words, slot: slotKey(slot), traceId, scored: base64Of(scored) };
  });
  const records = recordsOf(
    rows,
    sql`"runId" text, slot text, split text, step integer, task integer, index integer, attempt integer,
      resumption integer, outcome text,
      reason text, reward float8, success float8, turns integer, "sampledTokens" integer, "totalTokens" integer,
      "durationMs" float8, "taskId" text, "traceId" text, scored text, ${wordColumns}`,
  );
  await query(
    database,
    (db) =>
      db.execute(sql`
        insert into rollouts (run_id, slot, split, step, task, index, attempt, resumption, outcome, reason, reward, success, turns,
          sampled_tokens, total_tokens, duration_ms, task_id, trace_id, stored_at_ms, scored, words)
        select "runId", slot, split, step, task, index, attempt, resumption, outcome, reason, reward, success, turns,
          "sampledTokens", "totalTokens", "durationMs", "taskId", "traceId", ${Date.now()}::bigint, decode(scored, 'base64'),
          ${wordVector}
        from ${records}
        on conflict (run_id, slot) do update set
          id = excluded.id, attempt = excluded.attempt, resumption = excluded.resumption, outcome = excluded.outcome,
          reason = excluded.reason, reward = excluded.reward, success = excluded.success, turns = excluded.turns,
          sampled_tokens = excluded.sampled_tokens, total_tokens = excluded.total_tokens, duration_ms = excluded.duration_ms,
          task_id = excluded.task_id, trace_id = excluded.trace_id, stored_at_ms = excluded.stored_at_ms, scored = excluded.scored,
          words = excluded.words, spans_removed = false
          where excluded.resumption > rollouts.resumption`),
    { action: "store rollouts" },
  );
}

/** One statement may write a row only once, so this takes the first episode of the latest resumption of each rollout. */
function latestOf(items: readonly StoredRollout[]): StoredRollout[] {
  const latest = new Map<string, StoredRollout>();
  for (const item of items) {
    const { runId, slot, resumption } = item.record;
    const key = `${runId}/${slotKey(slot)}`;
    const known = latest.get(key);
    if (known === undefined || known.record.resumption < resumption) latest.set(key, item);
  }
  return [...latest.values()];
}

/** Writes all of them or none; the latest figures of a rollout replace earlier ones. */
export async function writeTrainings(database: Database, items: readonly TrainFigures[]): Promise<void> {
  // One statement may write a row only once.
  const rows = new Map(
    items.map(({ runId, slot, advantage, figures }) => [
      `${runId}/${slotKey(slot)}`,
      { runId, slot: slotKey(slot), advantage, figures },
    ]),
  );
  const records = recordsOf(
    [...rows.values()],
    sql`"runId" text, slot text, advantage float8, figures jsonb`,
  );
  await query(
    database,
    (db) =>
      db.execute(sql`
        insert into trainings (run_id, slot, advantage, figures, stored_at_ms)
        select "runId", slot, advantage, figures, ${Date.now()}::bigint
        from ${records}
        on conflict (run_id, slot) do update
          set advantage = excluded.advantage, figures = excluded.figures, stored_at_ms = excluded.stored_at_ms`),
    { action: "store training figures" },
  );
}
