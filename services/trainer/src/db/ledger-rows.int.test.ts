import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { slotKey } from "@hone/core";
import { migrate, openDatabase, query, sql, UniqueViolationError } from "@hone/storage";
import { contextOfTraceparent } from "@hone/telemetry";
import type { RunRecord } from "../domain/run/run-record.ts";
import type { Commit } from "../domain/step/ledger.ts";
import { CONFIG_JSON, LEASE_MS, noneBroken, TrainerDatabase } from "../testing/trainer-database.ts";
import { LedgerRows } from "./ledger-rows.ts";
import { migrations } from "./migrations.ts";
import type { RunRows } from "./run-rows.ts";

const SHA = "ab".repeat(32);

function entry(step: number, index: number): Commit["trained"][number] {
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
      sequence: 10 + index,
      bytes: 1,
      resumption: 0,
      durationMs: 1,
      trace: contextOfTraceparent(undefined),
    },
    reward: index,
    advantage: index - 0.5,
  };
}

describe("the ledger", () => {
  let world: TrainerDatabase;
  let runRows: RunRows;
  let ledger: LedgerRows;
  before(async () => {
    world = await TrainerDatabase.open();
    ({ runRows, ledger } = world);
  });
  after(() => world?.close());
  beforeEach(() => world.clear());

  function commitOf(run: RunRecord, version: number, changes: Partial<Commit> = {}): Commit {
    return {
      runId: run.runId,
      epoch: run.epoch,
      version,
      isFirst: version === 0,
      stateFolder: `runs/${run.runId}/state/${version}-${run.epoch}`,
      stateDigest: `digest-${version}`,
      stateFiles: { "model.safetensors": SHA, "optimizer/0.distcp": SHA },
      isWhole: true,
      arithmetic: "two workers",
      trained: version === 0 ? [] : [entry(version, 0), entry(version, 1)],
      leftOut: [],
      identity: { settings: "settings", tokenizer: "tokenizer" },
      weightsBefore: version === 0 ? "" : `digest-${version - 1}`,
      tokens: [],
      metrics: { loss: 0.5 },
      nextSequence: version * 10 + 1,
      ...changes,
    };
  }

  async function trained(runId: string): Promise<string[]> {
    const rows = await query(world.database, (db) =>
      db.execute(sql`select slot from ledger where run_id = ${runId} order by slot`),
    );
    return rows.map((row) => String(row.slot));
  }

  test("a run that begins with a later version commits it only where it has none", async () => {
    const run = await world.claimedRun();
    assert.equal(await ledger.commit(commitOf(run, 4)), false);
    assert.equal(await ledger.commit(commitOf(run, 4, { isFirst: true, trained: [] })), true);
    assert.equal(await ledger.commit(commitOf(run, 4, { isFirst: true, trained: [] })), false);
    assert.equal(await ledger.commit(commitOf(run, 5)), true);
    assert.equal((await ledger.load(run.runId))?.version, 5);
  });

  test("a commit moves the version and writes a row for each trained rollout", async () => {
    const run = await world.claimedRun();
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    assert.equal(await ledger.commit(commitOf(run, 1)), true);
    const row = await ledger.load(run.runId);
    assert.deepEqual(
      [row?.version, row?.stateFolder, row?.stateDigest, row?.nextSequence],
      [1, `runs/${run.runId}/state/1-1`, "digest-1", 11],
    );
    assert.deepEqual(await trained(run.runId), ["train.1.0.0", "train.1.0.1"]);
    assert.deepEqual(await ledger.step(run.runId, 1), { metrics: { loss: 0.5 } });
    const worth = (await ledger.trained(run.runId, 1)).map(({ slot, ...rest }) => [slotKey(slot), rest]);
    const expected = commitOf(run, 1).trained.map(({ rollout: { slot }, reward, advantage }) => [
      slotKey(slot),
      { role: undefined, reward, advantage },
    ]);
    assert.deepEqual(worth, expected);
  });

  test("stores the results of a step's tasks, only for committed steps", async () => {
    const run = await world.claimedRun();
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

  test("keeps the groups of an asynchronous run from when they are asked for until a step trains them", async () => {
    const run = await world.claimedRun();
    const { runId, epoch } = run;
    const placed = (step: number, task: number) => ({ step, task, cursor: 10 * step + task });
    const open = { trainedBy: undefined, isGivenUp: false };
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const first = [placed(1, 0), placed(1, 1), placed(1, 2)];
    const ask = { runId, epoch, step: 1, asked: first, givenUp: [], nextCursor: 13 };
    assert.equal(await ledger.askGroups(ask), true);
    assert.equal(await ledger.askGroups(ask), true, "a transaction whose answer was lost is made again");
    assert.deepEqual(await ledger.groups(runId, 0), {
      groups: first.map((group) => ({ ...group, ...open })),
      nextCursor: 13,
      decidedAt: 0,
    });
    const taken = [
      { ...placed(1, 2), completeAt: 7 },
      { ...placed(1, 0), completeAt: 9 },
    ];
    assert.equal(await ledger.commit(commitOf(run, 1, { taken })), true);
    const again = [placed(2, 0)];
    const replaced = { runId, epoch, step: 2, asked: again, givenUp: [placed(1, 1)], nextCursor: 13 };
    assert.equal(await ledger.askGroups({ ...replaced, epoch: epoch + 1 }), false);
    assert.equal(await ledger.askGroups({ ...replaced, step: 3 }), false);
    assert.equal(await ledger.askGroups(replaced), true);
    assert.deepEqual(await ledger.groups(runId, 0), {
      groups: [
        { ...placed(1, 0), ...open, trainedBy: 1 },
        { ...placed(1, 1), ...open, isGivenUp: true },
        { ...placed(1, 2), ...open, trainedBy: 1 },
        { ...placed(2, 0), ...open },
      ],
      nextCursor: 13,
      decidedAt: 9,
    });
    assert.deepEqual((await ledger.groups(runId, 1)).groups, [{ ...placed(2, 0), ...open }]);
    const places = await query(world.database, (db) =>
      db.execute(
        sql`select task from groups where run_id = ${runId} and trained_by = 1 order by complete_at`,
      ),
    );
    assert.deepEqual(
      places.map(({ task }) => task),
      [2, 0],
    );
  });

  test("gives the advantages of tokens back as the float32 that engines are given", async () => {
    const run = await world.claimedRun();
    const tokenAdvantages = Float64Array.of(0.1 + 0.2, -1 / 3, 1e-30, 0, 3e4);
    const [first, second] = commitOf(run, 1).trained;
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const entries = [{ ...first!, tokenAdvantages }, second!];
    assert.equal(await ledger.commit(commitOf(run, 1, { trained: entries })), true);
    const [found, other] = await ledger.trained(run.runId, 1);
    assert.deepEqual(Float32Array.from(found!.tokenAdvantages!), Float32Array.from(tokenAdvantages));
    assert.equal(other?.tokenAdvantages, undefined);
  });

  test("gives the advantages of turns back bit by bit", async () => {
    const run = await world.claimedRun();
    const turnAdvantages = [0.1 + 0.2, -1 / 3, 1e-300, 0];
    const [first, second] = commitOf(run, 1).trained;
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const rollouts = [{ ...first!, turnAdvantages }, second!];
    assert.equal(await ledger.commit(commitOf(run, 1, { trained: rollouts })), true);
    const worth = await ledger.trained(run.runId, 1);
    assert.deepEqual(worth[0]?.turnAdvantages, turnAdvantages);
    assert.equal(worth[1]?.turnAdvantages, undefined);
  });

  test("the state for a restart stays the same until another one with the optimizer is committed", async () => {
    const run = await world.claimedRun();
    const recoveryOf = async () => (await ledger.load(run.runId))?.recovery;
    const folder = (name: string) => `runs/${run.runId}/state/${name}-1`;
    assert.equal(await recoveryOf(), undefined);
    const files = { "model.safetensors": SHA, "optimizer/0.distcp": SHA };
    const warm = { folder: folder("warm-7"), digest: "warm", files, version: undefined, warmUpdates: 7 };
    assert.equal(await ledger.recordRecovery(run.runId, 2, warm, 1), false, "another owner's");
    assert.equal(await ledger.recordRecovery(run.runId, 1, warm, 1), true);
    assert.deepEqual(await recoveryOf(), warm);
    assert.equal(await ledger.commit(commitOf(run, 0)), true);
    const first = { folder: folder("0"), digest: "digest-0", files, version: 0, warmUpdates: 0 };
    assert.deepEqual(await recoveryOf(), first);
    assert.equal(await ledger.recordRecovery(run.runId, 1, warm, 1), false, "the warm start is over");
    assert.equal(await ledger.commit(commitOf(run, 1, { isWhole: false, nextSequence: 1 })), true);
    assert.deepEqual(await recoveryOf(), first);
    const replayed = {
      folder: folder("1"),
      digest: "digest-1",
      files: { ...files, new: SHA },
      version: 1,
      warmUpdates: 0,
    };
    assert.equal(await ledger.recordRecovery(run.runId, 1, replayed, 11), true);
    const row = await ledger.load(run.runId);
    assert.deepEqual([row?.recovery, row?.stateFolder, row?.nextSequence], [replayed, folder("1"), 11]);
    assert.deepEqual(row?.stateFiles, replayed.files);
    assert.equal(await ledger.stateDigest(run.runId, 1), "digest-1");
    assert.equal(await ledger.stateDigest(run.runId, 2), undefined);
    assert.equal(row?.arithmetic, "two workers");
  });

  test("a state that another arithmetic made again replaces the committed one", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    await ledger.commit(commitOf(run, 1, { isWhole: false }));
    const files = { "model.safetensors": SHA };
    const folder = `runs/${run.runId}/state/1-2`;
    const replayed = { folder, digest: "other", files, version: 1, warmUpdates: 0 };
    assert.equal(await ledger.recordRecovery(run.runId, 1, replayed, 11), true);
    assert.equal((await ledger.load(run.runId))?.stateDigest, "other");
    const [step] = await query(world.database, (db) =>
      db.execute(
        sql`select state_digest, state_folder from steps where run_id = ${run.runId} and version = 1`,
      ),
    );
    assert.deepEqual({ ...step }, { state_digest: "other", state_folder: folder });
  });

  test("a run that is older than the table of state files continues, and records its files", async () => {
    const schema = "before_files";
    const database = await openDatabase({ url: world.url, schema });
    await migrate(database, { migrations: migrations.filter(({ id }) => id < 8) });
    await query(database, (db) =>
      db.execute(sql`insert into runs (run_id, request_sequence, name, stage, config_json, version,
        state_folder, state_digest, owner, epoch) values ('test-1', 1, 'test', 'active', ${CONFIG_JSON}, 1,
        'runs/test-1/state/1-1', 'digest-1', 'one', 1)`),
    );
    await migrate(database, { migrations });
    const old = new LedgerRows(database);
    const run = (await old.load("test-1"))!;
    assert.deepEqual([run.version, run.stateFiles, run.recovery?.files], [1, {}, {}]);
    assert.equal(await old.commit(commitOf(run, 2)), true);
    const { stateFiles, recovery } = (await old.load("test-1"))!;
    assert.deepEqual([Object.keys(stateFiles).length, recovery?.files], [2, stateFiles]);
    await database.close();
  });

  test("names the column when a state's files are not valid, or lie outside of its folder", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    for (const files of [{ "../../other": SHA }, { "/etc/passwd": SHA }, { a: "none" }, [SHA]]) {
      await query(world.database, (db) =>
        db.execute(sql`update runs set state_files = ${JSON.stringify(files)}::jsonb`),
      );
      await assert.rejects(ledger.load(run.runId), /state_files must name files of the state/);
    }
  });

  test("the parts that two roles played of one rollout are two rows, and neither is trained twice", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    const partOf = (role: string): Commit["trained"][number] => {
      const whole = entry(1, 0);
      return { ...whole, rollout: { ...whole.rollout, role }, reward: role.length };
    };
    assert.ok(await ledger.commit(commitOf(run, 1, { trained: [partOf("white"), partOf("rival2")] })));
    const rows = await ledger.trained(run.runId, 1);
    assert.deepEqual(rows.map(({ role, reward }) => [role, reward]).sort(), [
      ["rival2", 6],
      ["white", 5],
    ]);
    await assert.rejects(
      ledger.commit(commitOf(run, 2, { trained: [partOf("white")] })),
      UniqueViolationError,
    );
  });

  test("a commit that is sent twice takes effect once", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    assert.equal(await ledger.commit(commitOf(run, 1)), true);
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    assert.equal((await trained(run.runId)).length, 2);
  });

  test("a commit of an owner whose epoch is over changes nothing", async () => {
    const run = await world.claimedRun("one");
    await ledger.commit(commitOf(run, 0));
    const [newer] = await runRows.claim("one", LEASE_MS, [], noneBroken);
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    assert.deepEqual(await trained(run.runId), []);
    assert.equal((await ledger.load(run.runId))?.version, 0);
    assert.equal(await ledger.commit(commitOf(newer!, 1)), true);
  });

  test("a commit must follow the version before it", async () => {
    const run = await world.claimedRun();
    assert.equal(await ledger.commit(commitOf(run, 1)), false);
    await ledger.commit(commitOf(run, 0));
    assert.equal(await ledger.commit(commitOf(run, 2)), false);
    assert.equal(await ledger.commit(commitOf(run, 0)), false);
  });

  test("when two owners commit the same step at once, one wins and only its rows are stored", async () => {
    const run = await world.claimedRun("one");
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

  test("a second commit with a rollout that was trained already is refused and changes nothing", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    await ledger.commit(commitOf(run, 1));
    await assert.rejects(
      ledger.commit(commitOf(run, 2, { trained: [entry(2, 0), entry(1, 0)] })),
      UniqueViolationError,
    );
    assert.equal((await ledger.load(run.runId))?.version, 1);
    assert.equal(await ledger.step(run.runId, 2), undefined);
  });

  test("thousands of rollouts fit into one commit", async () => {
    const run = await world.claimedRun();
    await ledger.commit(commitOf(run, 0));
    const rollouts = Array.from({ length: 4_500 }, (_, index) => entry(1, index));
    assert.equal(await ledger.commit(commitOf(run, 1, { trained: rollouts })), true);
    assert.equal((await trained(run.runId)).length, 4_500);
  });

  test("an evaluation is recorded once and only under the current epoch", async () => {
    const run = await world.claimedRun();
    const record = { version: 0, mode: "sampled", episodes: 4, metrics: { success: 0.5 } } as const;
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch, [record], 7), true);
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch, [{ ...record, episodes: 9 }], 8), true);
    assert.equal(await ledger.recordEvaluation(run.runId, run.epoch + 1, [record], 9), false);
    assert.deepEqual(await ledger.evaluations(run.runId, 0), [record]);
    assert.equal((await ledger.load(run.runId))?.nextSequence, 8);
  });
});
