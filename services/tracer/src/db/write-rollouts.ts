/** Stores scored rollouts and what training did with them. The first scored episode of a rollout stays. */

import { slotKey } from "@hone/core";
import { type Database, query } from "@hone/storage";
import { sql } from "drizzle-orm";
import type { TrainFigures } from "../domain/otlp/train-figures.ts";
import type { StoredRollout } from "../domain/ports.ts";
import { rollouts, trainings } from "./schema.ts";

/** Writes all of them or none. */
export async function writeRollouts(database: Database, items: readonly StoredRollout[]): Promise<void> {
  const storedAtMs = Date.now();
  const rows = items.map(({ record, traceId, scored }) => {
    const { slot, ...columns } = record;
    return { ...columns, ...slot, slot: slotKey(slot), traceId, scored, storedAtMs };
  });
  await query(database, (db) => db.insert(rollouts).values(rows).onConflictDoNothing(), {
    action: "store rollouts",
  });
}

/** Writes all of them or none; the latest figures of a rollout stay. */
export async function writeTrainings(database: Database, items: readonly TrainFigures[]): Promise<void> {
  const storedAtMs = Date.now();
  // One statement may touch a row once only.
  const rows = new Map(
    items.map(({ runId, slot, advantage, figures }) => [
      `${runId}/${slotKey(slot)}`,
      { runId, slot: slotKey(slot), advantage, figures, storedAtMs },
    ]),
  );
  await query(
    database,
    (db) =>
      db
        .insert(trainings)
        .values([...rows.values()])
        .onConflictDoUpdate({
          target: [trainings.runId, trainings.slot],
          set: {
            advantage: sql`excluded.advantage`,
            figures: sql`excluded.figures`,
            storedAtMs: sql`excluded.stored_at_ms`,
          },
        }),
    { action: "store what training did" },
  );
}
