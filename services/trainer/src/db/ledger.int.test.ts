import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { resolveRunConfig } from "@hone/config";
import { slotKey } from "@hone/core";
import {
  type Database,
  migrate,
  openDatabase,
  query,
  sql,
  transaction,
  UniqueViolationError,
} from "@hone/storage";
import { eventually, startPostgres } from "@hone/testing";
import type { BrokenRun, Commit, LedgerEntry } from "../domain/ports.ts";
import type { RunRecord } from "../domain/run-record.ts";
import { LedgerRows } from "./ledger-rows.ts";
import { migrations } from "./migrations.ts";
import { RunRows } from "./run-rows.ts";

const CONFIG = resolveRunConfig({
  name: "test",
  model: { init: { architecture: "qwen3", hiddenSize: 8, numLayers: 1, numHeads: 2, tokenizer: "t" } },
  dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } } },
  agent: { name: "a" },
  rollout: { tasksPerStep: 1, groupSize: 2 },
  trainer: { steps: 3, optimizer: { kind: "adamw", learningRate: 0.1 } },
});
const LEASE_MS = 60_000;
const noneBroken = ({ reason }: BrokenRun) => assert.fail(reason);

function entry(step: number, index: number): LedgerEntry {
  return {
    rollout: {
      slot: { split: "train", step, task: 0, index },
      attempt: 1,
      outcome: "completed",
      scores: [],
      samples: [
        {
          tokenIds: [1, 2],
          lossMask: Uint8Array.of(0, 1),
          logprobs: [-1],
          versions: [{ version: step - 1, tokenCount: 1 }],
        },
      ],
      metrics: {},
      turnCount: 1,
    },
    reward: index,
    advantage: index - 0.5,
    sequence: 10 + index,
  };
}

describe("ledger and ownership", () => {
  let server: Awaited<ReturnType<typeof startPostgres>>;
  let database: Database;
  let runRows: RunRows;
  let ledger: LedgerRows;
  let sequence = 0;

  before(async () => {
    server = await startPostgres();
    database = await openDatabase({ url: server.url, schema: "trainer" });
    await migrate(database, { migrations });
    runRows = new RunRows(database);
    ledger = new LedgerRows(database);
  });
  after(async () => {
    await database?.close();
    await server?.stop();
  });
  beforeEach(() => query(database, (db) => db.execute(sql`delete from runs`)));

  async function insertRun(): Promise<string> {
    const runId = `test-${++sequence}`;
    await runRows.insert({
      runId,
      requestSequence: sequence,
      name: runId,
      configJson: JSON.stringify(CONFIG),
    });
    return runId;
  }

  async function claimedRun(owner = "one"): Promise<RunRecord> {
    const runId = await insertRun();
    const claimed = await runRows.claim(owner, LEASE_MS, [], noneBroken);
    const run = claimed.find((candidate) => candidate.runId === runId)!;
    assert.ok(await runRows.activate(runId, run.epoch));
    return run;
  }

  function commitOf(run: RunRecord, version: number, changes: Partial<Commit> = {}): Commit {
    return {
      runId: run.runId,
      epoch: run.epoch,
      version,
      stateFolder: `runs/${run.runId}/state/${version}-${run.epoch}`,
      stateDigest: `digest-${version}`,
      isWhole: true,
      entries: version === 0 ? [] : [entry(version, 0), entry(version, 1)],
      metrics: { loss: 0.5 },
      nextSequence: version * 10 + 1,
      ...changes,
    };
  }

  async function trained(runId: string): Promise<string[]> {
    const rows = await query(database, (db) =>
      db.execute(sql`select slot from ledger where run_id = ${runId} order by slot`),
    );
    return rows.map((row) => String(row.slot));
  }

  test("a request that comes twice inserts one run", async () => {
    const run = { runId: "twice-900", requestSequence: 900, name: "twice", configJson: "{}" };
    assert.deepEqual(await runRows.insert(run), { kind: "inserted" });
    assert.deepEqual(await runRows.insert(run), { kind: "known" });
  });

  test("of many runs of one name that come at once, one is inserted; the next when it is over", async () => {
    const run = (sequence: number) => ({
      runId: `same-${sequence}`,
      requestSequence: sequence,
      name: "same",
      configJson: JSON.stringify(CONFIG),
    });
    const found = await Promise.all([901, 902, 903, 904].map((sequence) => runRows.insert(run(sequence))));
    assert.equal(found.filter(({ kind }) => kind === "inserted").length, 1);
    const first = found.findIndex(({ kind }) => kind === "inserted") + 901;
    assert.equal(found.filter((one) => one.kind === "under_way" && one.runId === `same-${first}`).length, 3);
    await query(database, (db) => db.execute(sql`update runs set stage = 'completed'`));
    assert.deepEqual(await runRows.insert(run(905)), { kind: "inserted" });
  });

  test("one of many trainers that look at once gets a free run", async () => {
    const runId = await insertRun();
    const owners = ["a", "b", "c", "d", "e", "f"];
    const claims = await Promise.all(owners.map((owner) => runRows.claim(owner, LEASE_MS, [], noneBroken)));
    assert.deepEqual(
      claims.flat().map((run) => [run.runId, run.epoch]),
      [[runId, 1]],
    );
  });

  test("a run under lease is left to its owner, and free once the lease is over", async () => {
    const runId = await insertRun();
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

  test("a lease that the database's clock left far ahead, as it went back, counts as over", async () => {
    const run = await claimedRun("one");
    const ahead = sql`update runs set lease_until = now() + interval '1 hour' where run_id = ${run.runId}`;
    await query(database, (db) => db.execute(ahead));
    const [taken] = await runRows.claim("two", LEASE_MS, [], noneBroken);
    assert.deepEqual([taken?.runId, taken?.epoch], [run.runId, 2]);
  });

  test("a run that a paused trainer keeps locked in a transaction holds up no other run", async () => {
    const locked = await insertRun();
    const free = await insertRun();
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

  test("a run with which trainer after trainer died is taken alone, the one with fewer deaths first", async () => {
    const claim = async (heldHere: string[] = []) =>
      (await runRows.claim("one", LEASE_MS, heldHere, noneBroken)).map(({ runId, tenures }) => [
        runId,
        tenures,
      ]);
    const deadly = await insertRun();
    for (let deaths = 1; deaths <= 4; deaths++) assert.deepEqual(await claim(), [[deadly, deaths]]);
    const healthy = await insertRun();
    assert.deepEqual(await claim([deadly]), [[healthy, 1]], "a fresh run does not wait for it");
    for (let deaths = 2; deaths <= 3; deaths++) await claim([deadly]);
    // Both are suspects now. One is taken, and the other one only once that has made progress.
    assert.deepEqual(await claim(), [[healthy, 4]]);
    assert.deepEqual(await claim([healthy]), []);
    const { epoch } = (await runRows.load(healthy))!;
    assert.ok(await runRows.activate(healthy, epoch));
    assert.deepEqual(await claim([healthy]), [[deadly, 5]]);
  });

  test("a restarted trainer takes its own runs at once, under a new epoch", async () => {
    const run = await claimedRun("one");
    const [again] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    assert.equal(again?.epoch, run.epoch + 1);
    assert.deepEqual(await runRows.claim("one", LEASE_MS, [run.runId], noneBroken), []);
  });

  test("a released run is free at once", async () => {
    const run = await claimedRun("one");
    await runRows.release(run.runId, run.epoch);
    assert.equal((await runRows.claim("two", LEASE_MS, [], noneBroken))[0]?.runId, run.runId);
  });

  test("a commit moves the version and writes a row for each trained rollout", async () => {
    const run = await claimedRun();
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    assert.equal(await ledger.commit(commitOf(run, 1)), true);
    const row = await ledger.load(run.runId);
    assert.deepEqual(
      [row?.version, row?.stateFolder, row?.stateDigest, row?.nextSequence],
      [1, `runs/${run.runId}/state/1-1`, "digest-1", 11],
    );
    assert.deepEqual(await trained(run.runId), ["train.1.0.0", "train.1.0.1"]);
    assert.deepEqual(await ledger.stepMetrics(run.runId, 1), { loss: 0.5 });
    const worth = (await ledger.trained(run.runId, 1)).map(({ slot, ...rest }) => [slotKey(slot), rest]);
    const expected = commitOf(run, 1).entries.map(({ rollout: { slot }, reward, advantage }) => [
      slotKey(slot),
      { reward, advantage },
    ]);
    assert.deepEqual(worth, expected);
  });

  test("keeps how the tasks of a step went, of committed steps only", async () => {
    const run = await claimedRun();
    const visitsOf = (step: number) => [
      { step, task: 0, taskId: "rows.jsonl:7", success: 1 / 3, nextCursor: 12 * step },
      { step, task: 1, taskId: "rows.jsonl:2", success: undefined, nextCursor: 12 * step },
    ];
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    assert.equal(await ledger.commit(commitOf(run, 1, { visits: visitsOf(1) })), true);
    assert.equal(await ledger.commit(commitOf(run, 1, { visits: visitsOf(1) })), false);
    assert.equal(await ledger.commit(commitOf(run, 2, { visits: visitsOf(2) })), true);
    assert.deepEqual(await ledger.visits(run.runId), [...visitsOf(1), ...visitsOf(2)]);
  });

  test("gives the advantages of turns back bit by bit", async () => {
    const run = await claimedRun();
    const turnAdvantages = [0.1 + 0.2, -1 / 3, 1e-300, 0];
    const [first, second] = commitOf(run, 1).entries;
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const entries = [{ ...first!, turnAdvantages }, second!];
    assert.equal(await ledger.commit(commitOf(run, 1, { entries })), true);
    const worth = await ledger.trained(run.runId, 1);
    assert.deepEqual(worth[0]?.turnAdvantages, turnAdvantages);
    assert.equal(worth[1]?.turnAdvantages, undefined);
  });

  test("a state to go on from stays where it was until another one with the optimizer is there", async () => {
    const run = await claimedRun();
    const recoveryOf = async () => (await ledger.load(run.runId))?.recovery;
    const folder = (name: string) => `runs/${run.runId}/state/${name}-1`;
    assert.equal(await recoveryOf(), undefined);
    const warm = { folder: folder("warm-7"), digest: "warm", version: undefined, warmUpdates: 7 };
    assert.equal(await ledger.recordRecovery(run.runId, 2, warm, 1), false, "another owner's");
    assert.equal(await ledger.recordRecovery(run.runId, 1, warm, 1), true);
    assert.deepEqual(await recoveryOf(), warm);
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const first = { folder: folder("0"), digest: "digest-0", version: 0, warmUpdates: 0 };
    assert.deepEqual(await recoveryOf(), first);
    assert.equal(await ledger.recordRecovery(run.runId, 1, warm, 1), false, "the warm start is over");
    assert.equal(await ledger.commit(commitOf(run, 1, { isWhole: false, nextSequence: 1 })), true);
    assert.deepEqual(await recoveryOf(), first);
    const replayed = { folder: folder("1"), digest: "digest-1", version: 1, warmUpdates: 0 };
    assert.equal(await ledger.recordRecovery(run.runId, 1, replayed, 11), true);
    const row = await ledger.load(run.runId);
    assert.deepEqual([row?.recovery, row?.stateFolder, row?.nextSequence], [replayed, folder("1"), 11]);
  });

  test("a commit that is sent twice takes effect once", async () => {
    const run = await claimedRun();
    await ledger.commit(commitOf(run, 0));
    assert.equal(await ledger.commit(commitOf(run, 1)), true);
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    assert.equal((await trained(run.runId)).length, 2);
  });

  test("a commit of an owner whose epoch is over changes nothing", async () => {
    const run = await claimedRun("one");
    await ledger.commit(commitOf(run, 0));
    const [newer] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    assert.deepEqual(await trained(run.runId), []);
    assert.equal((await ledger.load(run.runId))?.version, 0);
    assert.equal(await ledger.commit(commitOf(newer!, 1)), true);
  });

  test("a commit must follow the version before it", async () => {
    const run = await claimedRun();
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    await ledger.commit(commitOf(run, 0));
    assert.equal(await ledger.commit(commitOf(run, 2)), false);
    assert.equal(await ledger.commit(commitOf(run, 0)), false);
  });

  test("of two owners that commit the same step at once one wins, and its rows alone are there", async () => {
    const run = await claimedRun("one");
    await ledger.commit(commitOf(run, 0));
    const [newer] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    const results = await Promise.all([
      ledger.commit(commitOf(run, 1)),
      ledger.commit(commitOf(newer!, 1)),
      ledger.commit(commitOf(run, 1)),
    ]);
    assert.deepEqual(results, [false, true, false]);
    assert.equal((await trained(run.runId)).length, 2);
  });

  test("a rollout that was trained is refused in a second commit, which then changes nothing", async () => {
    const run = await claimedRun();
    await ledger.commit(commitOf(run, 0));
    await ledger.commit(commitOf(run, 1));
    await assert.rejects(
      ledger.commit(commitOf(run, 2, { entries: [entry(2, 0), entry(1, 0)] })),
      UniqueViolationError,
    );
    assert.equal((await ledger.load(run.runId))?.version, 1);
    assert.equal(await ledger.stepMetrics(run.runId, 2), undefined);
  });

  test("thousands of rollouts fit into one commit", async () => {
    const run = await claimedRun();
    await ledger.commit(commitOf(run, 0));
    const entries = Array.from({ length: 4_500 }, (_, index) => entry(1, index));
    assert.equal(await ledger.commit(commitOf(run, 1, { entries })), true);
    assert.equal((await trained(run.runId)).length, 4_500);
  });

  test("an evaluation is recorded once and only under the present epoch", async () => {
    const run = await claimedRun();
    const record = { version: 0, mode: "sampled", episodes: 4, metrics: { success: 0.5 } } as const;
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch, [record], 7), true);
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch, [{ ...record, episodes: 9 }], 8), true);
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch + 1, [record], 9), false);
    assert.deepEqual(await ledger.evaluations(run.runId, 0), [record]);
    assert.equal((await ledger.load(run.runId))?.nextSequence, 8);
  });

  test("wishes reach the owner with its lease, and a finished run takes none", async () => {
    const run = await claimedRun();
    await runRows.wish(run.runId, "pause");
    assert.deepEqual(await ledger.renew(run.runId, run.epoch, LEASE_MS), {
      isCancelRequested: false,
      isPauseRequested: true,
    });
    await runRows.wish(run.runId, "resume");
    await runRows.wish(run.runId, "cancel");
    assert.deepEqual(await ledger.renew(run.runId, run.epoch, LEASE_MS), {
      isCancelRequested: true,
      isPauseRequested: false,
    });
    assert.equal(await ledger.end(run.runId, run.epoch, "cancelled", "asked for"), true);
    assert.equal(await runRows.wish(run.runId, "pause"), undefined);
    assert.deepEqual(await runRows.claim("two", LEASE_MS, [], noneBroken), []);
    assert.equal((await ledger.load(run.runId))?.endReason, "asked for");
  });

  test("a refused run leaves no row, an accepted one is not removed by a late refusal", async () => {
    const runId = await insertRun();
    const [run] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    await runRows.remove(runId, run!.epoch);
    assert.equal(await runRows.load(runId), undefined);
    const active = await claimedRun("two");
    await runRows.remove(active.runId, active.epoch);
    assert.notEqual(await runRows.load(active.runId), undefined);
  });

  test("rows edited by hand are told of, each with its reason, and hold up no other", async () => {
    const edits: Array<[change: ReturnType<typeof sql>, reason: RegExp]> = [
      [sql`config_json = 'rubbish'`, /config_json must be a run file/],
      [sql`config_json = '{"name":"test"}'`, /config_json must be a run file/],
      [sql`config_json = replace(config_json, '"test"', '"other"')`, /run_id must be other-/],
      [
        sql`version = 1, state_folder = '../../etc'`,
        /state_folder must be runs\/.*: current value is "\.\.\/\.\.\/etc"/,
      ],
      [sql`version = 1, state_folder = ''`, /state_folder must be runs/],
      [sql`state_folder = 'runs/other/state/1-1'`, /state_folder must be empty before version 0/],
      [sql`next_sequence = -5`, /next_sequence must be at least 1/],
    ];
    const reasons = new Map<string, RegExp>();
    for (const [change, reason] of edits) {
      const runId = await insertRun();
      reasons.set(runId, reason);
      await query(database, (db) => db.execute(sql`update runs set ${change} where run_id = ${runId}`));
    }
    const sound = await insertRun();
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
    const runId = await insertRun();
    await assert.rejects(
      query(database, (db) => db.execute(sql`update runs set version = -1 where run_id = ${runId}`)),
    );
  });
});
