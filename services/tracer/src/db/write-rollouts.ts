/** Stores scored rollouts and what training did with them. The first scored episode of a rollout stays. */

import { slotKey } from "@hone/core";
import { type Database, query, sql } from "@hone/storage";
import type { TrainFigures } from "../domain/otlp/train-figures.ts";
import type { StoredRollout } from "../domain/ports.ts";
import { base64Of, recordsOf } from "./records.ts";

/** Writes all of them or none. */
export async function writeRollouts(database: Database, items: readonly StoredRollout[]): Promise<void> {
  const rows = items.map(({ record, traceId, scored }) => {
    const { slot, ...columns } = record;
    return { ...columns, ...slot, slot: slotKey(slot), traceId, scored: base64Of(scored) };
  });
  const records = recordsOf(
    rows,
    sql`"runId" text, slot text, split text, step integer, task integer, index integer, attempt integer, outcome text,
      reason text, reward float8, success float8, turns integer, "sampledTokens" integer, "totalTokens" integer,
      "durationMs" float8, "taskId" text, "traceId" text, scored text`,
  );
  await query(
    database,
    (db) =>
      db.execute(sql`
        insert into rollouts (run_id, slot, split, step, task, index, attempt, outcome, reason, reward, success, turns,
          sampled_tokens, total_tokens, duration_ms, task_id, trace_id, stored_at_ms, scored)
        select "runId", slot, split, step, task, index, attempt, outcome, reason, reward, success, turns,
          "sampledTokens", "totalTokens", "durationMs", "taskId", "traceId", ${Date.now()}::bigint, decode(scored, 'base64')
        from ${records}
        on conflict do nothing`),
    { action: "store rollouts" },
  );
}

/** Writes all of them or none; the latest figures of a rollout stay. */
export async function writeTrainings(database: Database, items: readonly TrainFigures[]): Promise<void> {
  // One statement may touch a row once only.
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
    { action: "store what training did" },
  );
}
