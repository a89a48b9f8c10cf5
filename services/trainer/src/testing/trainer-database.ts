/** A database of its own with the trainer's tables, for tests, and runs in it that are requested or owned. */

import assert from "node:assert/strict";
import { resolveRunConfig } from "@hone/config";
import { type Database, migrate, openDatabase, query, sql } from "@hone/storage";
import { startPostgres } from "@hone/testing";
import { LedgerRows } from "../db/ledger-rows.ts";
import { migrations } from "../db/migrations.ts";
import { RunRows } from "../db/run-rows.ts";
import type { RunRecord } from "../domain/run/run-record.ts";
import type { BrokenRun } from "../domain/run/run-registry.ts";

const CONFIG = resolveRunConfig({
  name: "test",
  model: { init: { architecture: "qwen3", hiddenSize: 8, numLayers: 1, numHeads: 2, tokenizer: "t" } },
  dataset: { train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } } },
  agent: { name: "a" },
  rollout: { tasksPerStep: 1, groupSize: 2 },
  trainer: { steps: 3, optimizer: { kind: "adamw", learningRate: 0.1 } },
});
export const CONFIG_JSON = JSON.stringify(CONFIG);
export const LEASE_MS = 60_000;

/** For claims that must not find a broken row. */
export const noneBroken = ({ reason }: BrokenRun) => assert.fail(reason);

export class TrainerDatabase {
  readonly database: Database;
  readonly runRows: RunRows;
  readonly ledger: LedgerRows;
  readonly #server: Awaited<ReturnType<typeof startPostgres>>;
  #sequence = 0;

  private constructor(server: Awaited<ReturnType<typeof startPostgres>>, database: Database) {
    this.#server = server;
    this.database = database;
    this.runRows = new RunRows(database);
    this.ledger = new LedgerRows(database);
  }

  static async open(): Promise<TrainerDatabase> {
    const server = await startPostgres();
    const database = await openDatabase({ url: server.url, schema: "trainer" });
    await migrate(database, { migrations });
    return new TrainerDatabase(server, database);
  }

  /** Address of the database, for a test that needs another schema. */
  get url(): string {
    return this.#server.url;
  }

  /** Removes all runs and everything that belongs to them. */
  async clear(): Promise<void> {
    await query(this.database, (db) => db.execute(sql`delete from runs`));
  }

  /** A run that nobody owns. Returns its id. */
  async insertRun(): Promise<string> {
    const requestSequence = ++this.#sequence;
    const runId = `test-${requestSequence}`;
    await this.runRows.insert({ runId, requestSequence, name: runId, configJson: CONFIG_JSON });
    return runId;
  }

  /** A run that was accepted and that `owner` trains. */
  async claimedRun(owner = "one"): Promise<RunRecord> {
    const runId = await this.insertRun();
    const claimed = await this.runRows.claim(owner, LEASE_MS, [], noneBroken);
    const run = claimed.find((candidate) => candidate.runId === runId)!;
    assert.ok(await this.runRows.activate(runId, run.epoch));
    return run;
  }

  async close(): Promise<void> {
    await this.database.close();
    await this.#server.stop();
  }
}
