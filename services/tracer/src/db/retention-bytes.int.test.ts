import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Database, migrate, openDatabase, query, sql } from "@hone/storage";
import { silentLogger } from "@hone/telemetry";
import { startPostgres } from "@hone/testing";
import type { RolloutRecord } from "../domain/rollout-record.ts";
import { NO_WORDS } from "../domain/search/rollout-texts.ts";
import { apiRoutes } from "../http/api/api-routes.ts";
import { TokenTexts } from "../http/api/token-texts.ts";
import { migrations } from "./migrations.ts";
import { readPieces } from "./read-spans.ts";
import { enforceRetention, storedBytes } from "./retention.ts";
import { writeRollouts, writeTrainings } from "./rollouts/write-rollouts.ts";
import { createStore } from "./store.ts";
import { writeEvents } from "./write-events.ts";
import { writeSpans } from "./write-spans.ts";

/* Retention by bytes: which steps are removed, what stays, and what views answer for what was removed. */

const KILOBYTE = 1_024;
const ROLLOUT_BYTES = 8 * KILOBYTE;
const SPAN_BYTES = 2 * KILOBYTE;
/** Bytes of one step: two rollouts with their spans, and some hundred bytes for the other columns of each. */
const STEP_BYTES = 2 * (ROLLOUT_BYTES + SPAN_BYTES + 2 * KILOBYTE);
const NO_LIMIT = { maxSpans: 1_000_000, maxRollouts: 1_000_000 };

describe("enforceRetention() by bytes", { timeout: 60_000 }, () => {
  let postgres: Awaited<ReturnType<typeof startPostgres>>;
  let database: Database;
  let api: ReturnType<typeof apiRoutes>;
  let sequence = 0;

  before(async () => {
    postgres = await startPostgres();
    database = await openDatabase({ url: postgres.url, schema: "tracer" });
    await migrate(database, { migrations });
    api = apiRoutes({
      store: createStore(database),
      tokenTexts: new TokenTexts("/nowhere", silentLogger()),
      askForFrames: () => assert.fail("not asked for"),
      askLedger: () => assert.fail("nobody asks for it"),
      health: () => assert.fail("not asked for"),
      intakeCounts: () => ({}),
      jaegerUrl: undefined,
      price: undefined,
      logger: silentLogger(),
    });
  });
  after(async () => {
    await database?.close();
    await postgres?.stop();
  });
  beforeEach(async () => {
    await query(database, (db) =>
      db.execute(sql`truncate runs, steps, rollouts, trainings, span_pieces, removals restart identity`),
    );
  });

  const traceOf = (runId: string, step: number, index: number) =>
    Buffer.from(`${runId}/${step}/${index}`).toString("hex").padEnd(32, "0").slice(0, 32);

  /** Stores a completed step with two rollouts, their spans and what training did with them. */
  async function storeStep(runId: string, step: number): Promise<void> {
    for (const index of [0, 1]) {
      const slot = { split: "train", step, task: 0, index } as const;
      const traceId = traceOf(runId, step, index);
      const record: RolloutRecord = {
        runId,
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
      };
      await writeRollouts(database, [{ record, traceId, scored: randomBytes(ROLLOUT_BYTES) }]);
      await writeTrainings(database, [{ runId, slot, advantage: 1, figures: {} }]);
      await writeSpans(database, [{ traceId, spanCount: 3, data: randomBytes(SPAN_BYTES) }]);
    }
    const metrics = { success: 1 };
    const about = { runId, sequence: ++sequence, timeMs: sequence };
    await writeEvents(database, [
      { ...about, kind: "step_completed", step, totalSteps: 9, version: step, metrics },
    ]);
  }

  const storeEnd = (runId: string) =>
    writeEvents(database, [
      {
        ...{ runId, sequence: ++sequence, timeMs: sequence, kind: "ended", phase: "completed" },
        ...{ reason: "", checkpoint: "", resumption: 0 },
      },
    ]);

  const stepsLeft = async () => {
    const rows = await query(database, (db) =>
      db.execute<{ step: string }>(
        sql`select distinct run_id || '/' || step as step from rollouts order by 1`,
      ),
    );
    return rows.map(({ step }) => step);
  };
  const counted = async (table: "steps" | "trainings") => {
    const [row] = await query(database, (db) =>
      db.execute<{ n: number }>(sql`select count(*)::int as n from ${sql.raw(table)}`),
    );
    return row?.n;
  };
  const asked = async (route: string) => {
    const answer = await api.request(route);
    const { error } = (await answer.json()) as { error?: { code: string } };
    return `${answer.status} ${error?.code ?? ""}`.trim();
  };

  test("whole steps are removed: first those of ended runs in the order of their ends, then the oldest", async () => {
    for (const step of [1, 2]) await storeStep("goes-on", step);
    for (const run of ["ended-second", "ended-first"]) await storeStep(run, 1);
    await storeEnd("ended-first");
    await storeEnd("ended-second");
    await storeStep("goes-on", 3);

    const keep = async (steps: number) => {
      await enforceRetention(database, { ...NO_LIMIT, maxBytes: steps * STEP_BYTES });
      assert.ok((await storedBytes(database)) <= steps * STEP_BYTES);
      return stepsLeft();
    };
    assert.equal((await keep(5)).length, 5);
    assert.deepEqual(await keep(4), ["ended-second/1", "goes-on/1", "goes-on/2", "goes-on/3"]);
    assert.deepEqual(await keep(3), ["goes-on/1", "goes-on/2", "goes-on/3"]);
    assert.deepEqual(await keep(2), ["goes-on/2", "goes-on/3"]);
    assert.deepEqual(await readPieces(database, traceOf("goes-on", 1, 0)), []);
    assert.equal((await readPieces(database, traceOf("goes-on", 2, 1))).length, 1);
    assert.equal(await counted("trainings"), 4);
    assert.equal(await counted("steps"), 5, "the curves stay");
  });

  test("views answer 410 for what is no longer kept and 404 for what never existed", async () => {
    for (const step of [1, 2]) await storeStep("lake-1", step);
    await enforceRetention(database, { ...NO_LIMIT, maxBytes: STEP_BYTES });
    assert.equal(await asked("/runs/lake-1/rollouts/train.1.0.0"), "410 NO_LONGER_KEPT");
    assert.equal(await asked("/runs/lake-1/rollouts/train.1.0.0/trace"), "410 NO_LONGER_KEPT");
    assert.equal(await asked(`/traces/${traceOf("lake-1", 1, 0)}`), "410 NO_LONGER_KEPT");
    assert.equal(await asked("/runs/lake-1/rollouts/train.2.0.9"), "404 NOT_FOUND");
    assert.equal(await asked("/runs/lake-2/rollouts/train.1.0.0"), "404 NOT_FOUND");
    const run = (await (await api.request("/runs/lake-1/steps")).json()) as { steps: number[] };
    assert.deepEqual(run.steps, [1, 2]);
    assert.equal((await createStore(database).readRun("lake-1"))?.removedRollouts, 2);
  });

  test("the trace of a rollout answers 410 when its spans were removed by count", async () => {
    await storeStep("lake-1", 1);
    await enforceRetention(database, { ...NO_LIMIT, maxSpans: 3, maxBytes: 100 * STEP_BYTES });
    assert.equal(await asked("/runs/lake-1/rollouts/train.1.0.0/trace"), "410 NO_LONGER_KEPT");
    assert.equal((await createStore(database).readRollout("lake-1", "train.1.0.1"))?.spansRemoved, false);
  });

  test("spans that belong to no rollout are removed before rollouts are, down to a quarter of the bytes", async () => {
    await storeStep("lake-1", 1);
    const count = 40;
    for (let n = 0; n < count; n++)
      await writeSpans(database, [{ traceId: `loose-${n}`, spanCount: 1, data: randomBytes(SPAN_BYTES) }]);
    const maxBytes = 2 * STEP_BYTES;
    const gone = await enforceRetention(database, { ...NO_LIMIT, maxBytes });
    assert.equal(gone.rollouts, 0);
    assert.ok(gone.spans > 0 && gone.spans < count, `${gone.spans} went`);
    assert.ok((await storedBytes(database)) <= maxBytes);
    assert.deepEqual(await readPieces(database, "loose-0"), []);
    assert.equal((await readPieces(database, `loose-${count - 1}`)).length, 1);
  });
});
