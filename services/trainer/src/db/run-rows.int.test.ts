import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type Database, query, sql, transaction } from "@hone/storage";
import { eventually } from "@hone/testing";
import type { BrokenRun } from "../domain/run/run-registry.ts";
import { CONFIG_JSON, LEASE_MS, noneBroken, TrainerDatabase } from "../testing/trainer-database.ts";
import type { LedgerRows } from "./ledger-rows.ts";
import type { RunRows } from "./run-rows.ts";

describe("runs and who owns them", () => {
  let world: TrainerDatabase;
  let database: Database;
  let runRows: RunRows;
  let ledger: LedgerRows;
  before(async () => {
    world = await TrainerDatabase.open();
    ({ database, runRows, ledger } = world);
  });
  after(() => world?.close());
  beforeEach(() => world.clear());

  test("a request that is delivered twice inserts one run", async () => {
    const run = { runId: "twice-900", requestSequence: 900, name: "twice", configJson: "{}" };
    assert.deepEqual(await runRows.insert(run), { kind: "inserted" });
    assert.deepEqual(await runRows.insert(run), { kind: "known" });
  });

  test("when many runs of one name arrive at once, one is inserted, and another only after its end", async () => {
    const run = (sequence: number) => ({
      runId: `same-${sequence}`,
      requestSequence: sequence,
      name: "same",
      configJson: CONFIG_JSON,
    });
    const found = await Promise.all([901, 902, 903, 904].map((sequence) => runRows.insert(run(sequence))));
    assert.equal(found.filter(({ kind }) => kind === "inserted").length, 1);
    const first = found.findIndex(({ kind }) => kind === "inserted") + 901;
    assert.equal(found.filter((one) => one.kind === "under_way" && one.runId === `same-${first}`).length, 3);
    await query(database, (db) => db.execute(sql`update runs set stage = 'completed'`));
    assert.deepEqual(await runRows.insert(run(905)), { kind: "inserted" });
  });

  test("when many trainers look for a free run at once, exactly one claims it", async () => {
    const runId = await world.insertRun();
    const owners = ["a", "b", "c", "d", "e", "f"];
    const claims = await Promise.all(owners.map((owner) => runRows.claim(owner, LEASE_MS, [], noneBroken)));
    assert.deepEqual(
      claims.flat().map((run) => [run.runId, run.epoch]),
      [[runId, 1]],
    );
  });

  test("a run stays with its owner during the lease, and may be claimed afterwards", async () => {
    const runId = await world.insertRun();
    await runRows.claim("one", 50, [], noneBroken);
    const taken = await eventually(
      "the lease to run out",
      async () => (await runRows.claim("two", LEASE_MS, [], noneBroken))[0],
    );
    assert.deepEqual([taken.runId, taken.epoch], [runId, 2]);
    assert.equal(await ledger.renew(runId, 1, LEASE_MS), undefined);
    assert.deepEqual(await ledger.renew(runId, 2, LEASE_MS), {
      isCancelRequested: false,
      isPauseRequested: false,
    });
    assert.deepEqual(await runRows.claim("one", LEASE_MS, [], noneBroken), []);
  });

  test("a lease far in the future, because the database's clock was set back, counts as expired", async () => {
    const run = await world.claimedRun("one");
    const ahead = sql`update runs set lease_until = now() + interval '1 hour' where run_id = ${run.runId}`;
    await query(database, (db) => db.execute(ahead));
    const [taken] = await runRows.claim("two", LEASE_MS, [], noneBroken);
    assert.deepEqual([taken?.runId, taken?.epoch], [run.runId, 2]);
  });

  test("a run that a paused trainer keeps locked in a transaction does not delay other runs", async () => {
    const locked = await world.insertRun();
    const free = await world.insertRun();
    const isLocked = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const paused = transaction(
      database,
      async (tx) => {
        await tx.execute(sql`update runs set version = 0 where run_id = ${locked}`);
        isLocked.resolve();
        await mayEnd.promise;
      },
      { action: "stand still" },
    );
    await isLocked.promise;
    const claimed = await runRows.claim("two", LEASE_MS, [], noneBroken);
    assert.deepEqual(
      claimed.map(({ runId }) => runId),
      [free],
    );
    mayEnd.resolve();
    await paused;
  });

  test("runs with which several trainers in a row died are claimed one at a time, those with fewer deaths first", async () => {
    const claim = async (heldHere: string[] = []) =>
      (await runRows.claim("one", LEASE_MS, heldHere, noneBroken)).map(({ runId, tenures }) => [
        runId,
        tenures,
      ]);
    const deadly = await world.insertRun();
    for (let deaths = 1; deaths <= 4; deaths++) assert.deepEqual(await claim(), [[deadly, deaths]]);
    const healthy = await world.insertRun();
    assert.deepEqual(await claim([deadly]), [[healthy, 1]], "a fresh run does not wait for it");
    for (let deaths = 2; deaths <= 3; deaths++) await claim([deadly]);
    // Both are suspects now. One is taken, and the other one only once that has made progress.
    assert.deepEqual(await claim(), [[healthy, 4]]);
    assert.deepEqual(await claim([healthy]), []);
    const { epoch } = (await runRows.load(healthy))!;
    assert.ok(await runRows.activate(healthy, epoch));
    assert.deepEqual(await claim([healthy]), [[deadly, 5]]);
  });

  test("a restarted trainer claims its own runs at once, under a new epoch", async () => {
    const run = await world.claimedRun("one");
    const [again] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    assert.equal(again?.epoch, run.epoch + 1);
    assert.deepEqual(await runRows.claim("one", LEASE_MS, [run.runId], noneBroken), []);
  });

  test("a released run may be claimed at once", async () => {
    const run = await world.claimedRun("one");
    await runRows.release(run.runId, run.epoch);
    assert.equal((await runRows.claim("two", LEASE_MS, [], noneBroken))[0]?.runId, run.runId);
  });

  test("requests to cancel or pause reach the owner with its lease, and a finished run accepts none", async () => {
    const run = await world.claimedRun();
    await runRows.requestControl(run.runId, "pause");
    assert.deepEqual(await ledger.renew(run.runId, run.epoch, LEASE_MS), {
      isCancelRequested: false,
      isPauseRequested: true,
    });
    await runRows.requestControl(run.runId, "resume");
    await runRows.requestControl(run.runId, "cancel");
    assert.deepEqual(await ledger.renew(run.runId, run.epoch, LEASE_MS), {
      isCancelRequested: true,
      isPauseRequested: false,
    });
    assert.equal(await ledger.end(run.runId, run.epoch, "cancelled", "asked for"), true);
    assert.equal(await runRows.requestControl(run.runId, "pause"), undefined);
    assert.deepEqual(await runRows.claim("two", LEASE_MS, [], noneBroken), []);
    assert.equal((await ledger.load(run.runId))?.endReason, "asked for");
  });

  test("a refused run leaves no row, and a late refusal does not remove an accepted run", async () => {
    const runId = await world.insertRun();
    const [run] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    await runRows.remove(runId, run!.epoch);
    assert.equal(await runRows.load(runId), undefined);
    const active = await world.claimedRun("two");
    await runRows.remove(active.runId, active.epoch);
    assert.notEqual(await runRows.load(active.runId), undefined);
  });

  test("rows that were broken by hand are reported with their reasons, and do not delay other runs", async () => {
    const edits: Array<[change: ReturnType<typeof sql>, reason: RegExp]> = [
      [sql`config_json = 'rubbish'`, /config_json must be a run file/],
      [sql`config_json = '{"name":"test"}'`, /config_json must be a run file/],
      [sql`config_json = replace(config_json, '"test"', '"other"')`, /run_id must be other-/],
      [
        sql`version = 1, state_folder = '../../etc'`,
        /state_folder must be runs\/.*, but it is "\.\.\/\.\.\/etc"/,
      ],
      [sql`version = 1, state_folder = ''`, /state_folder must be runs/],
      [sql`state_folder = 'runs/other/state/1-1'`, /state_folder must be empty before version 0/],
      [sql`next_sequence = -5`, /next_sequence must be at least 1/],
    ];
    const reasons = new Map<string, RegExp>();
    for (const [change, reason] of edits) {
      const runId = await world.insertRun();
      reasons.set(runId, reason);
      await query(database, (db) => db.execute(sql`update runs set ${change} where run_id = ${runId}`));
    }
    const sound = await world.insertRun();
    const broken: BrokenRun[] = [];
    const claimed = await runRows.claim("one", LEASE_MS, [], (run) => broken.push(run));
    assert.deepEqual(
      claimed.map(({ runId }) => runId),
      [sound],
    );
    assert.equal(broken.length, edits.length);
    for (const { runId, reason } of broken) assert.match(reason, reasons.get(runId)!);
    await assert.rejects(runRows.load(broken[0]!.runId), /config_json must be a run file/);
  });

  test("a version below 0 is refused by the table itself", async () => {
    const runId = await world.insertRun();
    await assert.rejects(
      query(database, (db) => db.execute(sql`update runs set version = -1 where run_id = ${runId}`)),
    );
  });
});
