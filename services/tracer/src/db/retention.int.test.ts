import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Slot } from "@hone/core";
import { type Database, migrate, openDatabase, query, sql } from "@hone/storage";
import { startPostgres } from "@hone/testing";
import { NO_WORDS } from "../domain/search/rollout-texts.ts";
import { migrations } from "./migrations.ts";
import { readPieces } from "./read-spans.ts";
import { enforceRetention } from "./retention.ts";
import { listRollouts } from "./rollouts/list-rollouts.ts";
import { writeRollouts, writeTrainings } from "./rollouts/write-rollouts.ts";
import { writeSpans } from "./write-spans.ts";

describe("enforceRetention()", { timeout: 60_000 }, () => {
  let postgres: Awaited<ReturnType<typeof startPostgres>>;
  let database: Database;

  before(async () => {
    postgres = await startPostgres();
    database = await openDatabase({ url: postgres.url, schema: "tracer" });
    await migrate(database, { migrations });
  });
  after(async () => {
    await database?.close();
    await postgres?.stop();
  });

  const rollout = (index: number) => {
    const slot: Slot = { split: "train", step: 1, task: 0, index };
    const record = {
      runId: "lake-1",
      slot,
      attempt: 1,
      resumption: 0,
      outcome: "completed",
      reason: "",
      reward: 1,
      success: 1,
      turns: 1,
      sampledTokens: 1,
      totalTokens: 2,
      durationMs: 1,
      taskId: "t",
      words: NO_WORDS,
    } as const;
    return { record, traceId: "", scored: new Uint8Array([1]) };
  };

  test("keeps the newest spans, in whole pieces", async () => {
    const piece = (n: number) => ({ traceId: String(n), spanCount: 10, data: new Uint8Array([n]) });
    await writeSpans(database, [piece(1), piece(2), piece(3), piece(4)]);
    const limits = { maxSpans: 25, maxRollouts: 100, maxBytes: Number.MAX_SAFE_INTEGER };
    assert.deepEqual(await enforceRetention(database, limits), { spans: 20, rollouts: 0 });
    assert.deepEqual(await readPieces(database, "2"), []);
    assert.equal((await readPieces(database, "3")).length, 1);
    assert.deepEqual(await enforceRetention(database, limits), { spans: 0, rollouts: 0 });
  });

  test("keeps the newest rollouts, with their training figures", async () => {
    for (let index = 0; index < 5; index++) {
      await writeRollouts(database, [rollout(index)]);
      await writeTrainings(database, [
        { runId: "lake-1", slot: rollout(index).record.slot, advantage: index, figures: {} },
      ]);
    }
    const gone = await enforceRetention(database, {
      maxSpans: 100,
      maxRollouts: 3,
      maxBytes: Number.MAX_SAFE_INTEGER,
    });
    assert.deepEqual(gone, { spans: 0, rollouts: 2 });
    const { rollouts } = await listRollouts(database, "lake-1", { limit: 10 });
    assert.deepEqual(
      rollouts.map(({ index, advantage }) => [index, advantage]),
      [
        [4, 4],
        [3, 3],
        [2, 2],
      ],
    );
    const [left] = await query(database, (db) =>
      db.execute(sql`select count(*)::int as count from trainings`),
    );
    assert.equal(left?.count, 3);
  });

  test("keeps the first scored attempt of a rollout", async () => {
    const again = rollout(4);
    await writeRollouts(database, [{ ...again, record: { ...again.record, attempt: 2, reward: 0 } }]);
    const { rollouts } = await listRollouts(database, "lake-1", { limit: 1 });
    assert.deepEqual([rollouts[0]?.attempt, rollouts[0]?.reward], [1, 1]);
  });
});
