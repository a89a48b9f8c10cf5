/** Rows of `runs`: admission, ownership by lease, wishes. */

import { and, asc, type Database, eq, inArray, isNull, lt, or, query, sql } from "@hone/storage";
import type { NewRun, RunRegistry } from "../domain/ports.ts";
import { type RunRecord, RunStage } from "../domain/run-record.ts";
import { runs } from "./schema.ts";

const UNFINISHED = [RunStage.admitting, RunStage.active];

/** Time on the database's clock, so that the clocks of trainers do not matter. */
const leaseEnd = (leaseMs: number) => sql`now() + ${leaseMs}::double precision * interval '1 millisecond'`;

export class RunRows implements RunRegistry {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async insert(run: NewRun): Promise<boolean> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .insert(runs)
          .values({ ...run, stage: RunStage.admitting })
          .onConflictDoNothing()
          .returning({ runId: runs.runId }),
      { action: `insert run ${run.runId}`, isRepeatable: true },
    );
    return rows.length > 0;
  }

  async claim(owner: string, leaseMs: number, heldHere: readonly string[]): Promise<RunRecord[]> {
    // A run of this very instance is free at once: whoever held it under this name is gone, unless it is held here.
    const isFree = or(isNull(runs.leaseUntil), lt(runs.leaseUntil, sql`now()`), eq(runs.owner, owner));
    const candidates = await query(
      this.#database,
      (db) =>
        db
          .select({ runId: runs.runId, epoch: runs.epoch })
          .from(runs)
          .where(and(inArray(runs.stage, UNFINISHED), isFree))
          .orderBy(asc(runs.requestSequence)),
      { action: "look for runs without an owner", isRepeatable: true },
    );
    const claimed: RunRecord[] = [];
    for (const { runId, epoch } of candidates) {
      if (heldHere.includes(runId)) continue;
      const rows = await query(
        this.#database,
        (db) =>
          db
            .update(runs)
            .set({ owner, epoch: epoch + 1, leaseUntil: leaseEnd(leaseMs) })
            .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), inArray(runs.stage, UNFINISHED), isFree))
            .returning(),
        { action: `claim run ${runId}` },
      );
      claimed.push(...rows.map(recordOf));
    }
    return claimed;
  }

  async activate(runId: string, epoch: number): Promise<boolean> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ stage: RunStage.active })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), inArray(runs.stage, UNFINISHED)))
          .returning({ runId: runs.runId }),
      { action: `activate run ${runId}`, isRepeatable: true },
    );
    return rows.length > 0;
  }

  async remove(runId: string, epoch: number): Promise<void> {
    await query(
      this.#database,
      (db) =>
        db
          .delete(runs)
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), eq(runs.stage, RunStage.admitting))),
      { action: `remove run ${runId}`, isRepeatable: true },
    );
  }

  async release(runId: string, epoch: number): Promise<void> {
    await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ leaseUntil: null })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch))),
      { action: `release run ${runId}`, isRepeatable: true },
    );
  }

  async wish(runId: string, wish: "cancel" | "pause" | "resume"): Promise<RunRecord | undefined> {
    const change = wish === "cancel" ? { isCancelRequested: true } : { isPauseRequested: wish === "pause" };
    const [row] = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set(change)
          .where(and(eq(runs.runId, runId), inArray(runs.stage, UNFINISHED)))
          .returning(),
      { action: `${wish} run ${runId}`, isRepeatable: true },
    );
    return row === undefined ? undefined : recordOf(row);
  }

  async load(runId: string): Promise<RunRecord | undefined> {
    const [row] = await query(this.#database, (db) => db.select().from(runs).where(eq(runs.runId, runId)), {
      action: `read run ${runId}`,
      isRepeatable: true,
    });
    return row === undefined ? undefined : recordOf(row);
  }
}

/** A row in the domain's words. */
export function recordOf(row: typeof runs.$inferSelect): RunRecord {
  return {
    runId: row.runId,
    requestSequence: row.requestSequence,
    stage: row.stage as RunStage,
    config: JSON.parse(row.configJson) as RunRecord["config"],
    configJson: row.configJson,
    version: row.version ?? undefined,
    stateFolder: row.stateFolder,
    stateDigest: row.stateDigest,
    nextSequence: row.nextSequence,
    epoch: row.epoch,
    isCancelRequested: row.isCancelRequested,
    isPauseRequested: row.isPauseRequested,
    endReason: row.endReason,
  };
}
