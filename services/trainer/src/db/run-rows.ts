/**
 * Rows of `runs`: admission, ownership by lease, requests to cancel or pause.
 *
 * O1: leases are times of the database's clock; trainers' clocks do not matter. When the database's clock goes back, a
 *     lease that lies further in the future than any trainer may ask for counts as over.
 * O2: a row that a paused process keeps locked in a transaction does not delay other runs.
 * O3: a run with which several processes in a row died is claimed alone, so that no other run dies with the process.
 * O4: a broken row (edited by hand, damaged) does not delay other runs: it is claimed and reported.
 */

import {
  and,
  asc,
  type Database,
  eq,
  gt,
  inArray,
  isNull,
  lt,
  ne,
  notInArray,
  or,
  query,
  sql,
  transaction,
} from "@hone/storage";
import { BrokenRowError } from "../domain/errors.ts";
import { type RunRecord, RunStage } from "../domain/run/run-record.ts";
import type {
  BrokenRun,
  EndedRun,
  Insertion,
  NewRun,
  Resumption,
  RunRegistry,
} from "../domain/run/run-registry.ts";
import { recordOf } from "./run-row.ts";
import { runs } from "./schema.ts";

const UNFINISHED = [RunStage.admitting, RunStage.active];

/** Prefix of the lock on a name: locks are numbers, and other things in the database are locked, too. */
const NAME_LOCK = "hone run name ";
/** No trainer may ask for a longer lease: see HONE_TRAINER_LEASE_MS. */
const MAX_LEASE_MS = 600_000;
/** This many tenures without progress may be chance: the process was killed for reasons outside the run (O3). */
const FREE_TENURES = 3;

/** How long a failed run keeps the episodes that it would replay: long enough for people who look once a week. */
const REPLAYABLE_MS = 8 * 86_400_000;

/** Time on the database's clock (O1). */
const leaseEnd = (leaseMs: number) => sql`now() + ${leaseMs}::double precision * interval '1 millisecond'`;

export class RunRows implements RunRegistry {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async insert(run: NewRun): Promise<Insertion> {
    const { requestSequence, name } = run;
    return transaction(
      this.#database,
      async (tx): Promise<Insertion> => {
        await tx.execute(sql`select pg_advisory_xact_lock(hashtext(${`${NAME_LOCK}${name}`}))`);
        const known = await tx
          .select({ runId: runs.runId })
          .from(runs)
          .where(eq(runs.requestSequence, requestSequence));
        if (known.length > 0) return { kind: "known" };
        const [underWay] = await tx
          .select({ runId: runs.runId, stage: runs.stage })
          .from(runs)
          .where(and(eq(runs.name, name), inArray(runs.stage, UNFINISHED)))
          .limit(1);
        if (underWay !== undefined) {
          const { runId, stage } = underWay;
          return { kind: "under_way", runId, isAdmitted: stage !== RunStage.admitting };
        }
        const rows = await tx
          .insert(runs)
          .values({ ...run, stage: RunStage.admitting })
          .onConflictDoNothing()
          .returning({ runId: runs.runId });
        return { kind: rows.length > 0 ? "inserted" : "known" };
      },
      { action: `insert run ${run.runId}` },
    );
  }

  async claim(
    owner: string,
    leaseMs: number,
    heldHere: readonly string[],
    onBroken: (run: BrokenRun) => void,
  ): Promise<RunRecord[]> {
    // A run of this instance may be claimed at once, unless this process holds it: an earlier process of the name is gone.
    const isFree = or(
      isNull(runs.leaseUntil),
      lt(runs.leaseUntil, sql`now()`),
      gt(runs.leaseUntil, leaseEnd(MAX_LEASE_MS)), // O1
      eq(runs.owner, owner),
    );
    const candidates = await query(
      this.#database,
      (db) =>
        db
          .select({ runId: runs.runId, epoch: runs.epoch, tenures: runs.tenures })
          .from(runs)
          .where(and(inArray(runs.stage, UNFINISHED), isFree))
          .orderBy(asc(runs.tenures), asc(runs.requestSequence))
          .for("update", { skipLocked: true }), // O2
      { action: "look for runs without an owner", isRepeatable: true },
    );
    const isSuspect = ({ tenures }: { tenures: number }) => tenures >= FREE_TENURES;
    let holdsSuspect = candidates.some((run) => heldHere.includes(run.runId) && run.tenures > FREE_TENURES);
    const claimed: RunRecord[] = [];
    for (const candidate of candidates) {
      const { runId, epoch } = candidate;
      if (heldHere.includes(runId)) continue;
      if (isSuspect(candidate) && holdsSuspect) continue; // O3
      holdsSuspect ||= isSuspect(candidate);
      const rows = await query(
        this.#database,
        (db) =>
          db
            .update(runs)
            .set({
              owner,
              epoch: epoch + 1,
              tenures: sql`${runs.tenures} + 1`,
              leaseUntil: leaseEnd(leaseMs),
            })
            .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), inArray(runs.stage, UNFINISHED), isFree))
            .returning(),
        { action: `claim run ${runId}` },
      );
      for (const row of rows) {
        try {
          claimed.push(recordOf(row));
        } catch (error) {
          if (!(error instanceof BrokenRowError)) throw error;
          onBroken({ runId, epoch: row.epoch, version: row.version ?? 0, reason: error.message }); // O4
        }
      }
    }
    return claimed;
  }

  async activate(runId: string, epoch: number): Promise<boolean> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ stage: RunStage.active, tenures: 0 })
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

  async recordSurvival(runId: string, epoch: number): Promise<void> {
    await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ tenures: 0 })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch))),
      { action: `note the end of a tenure of ${runId}`, isRepeatable: true },
    );
  }

  async release(runId: string, epoch: number): Promise<void> {
    await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ leaseUntil: null, tenures: 0 })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch))),
      { action: `release run ${runId}`, isRepeatable: true },
    );
  }

  async requestControl(runId: string, verb: "cancel" | "pause" | "resume"): Promise<RunRecord | undefined> {
    const change = verb === "cancel" ? { isCancelRequested: true } : { isPauseRequested: verb === "pause" };
    const [row] = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set(change)
          .where(and(eq(runs.runId, runId), inArray(runs.stage, UNFINISHED)))
          .returning(),
      { action: `${verb} run ${runId}`, isRepeatable: true },
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

  async resume(runId: string): Promise<Resumption | undefined> {
    return transaction(
      this.#database,
      async (tx): Promise<Resumption | undefined> => {
        const [run] = await tx.select().from(runs).where(eq(runs.runId, runId));
        if (run === undefined) return undefined;
        await tx.execute(sql`select pg_advisory_xact_lock(hashtext(${`${NAME_LOCK}${run.name}`}))`);
        const [other] = await tx
          .select({ runId: runs.runId })
          .from(runs)
          .where(and(eq(runs.name, run.name), ne(runs.runId, runId), inArray(runs.stage, UNFINISHED)))
          .limit(1);
        if (other !== undefined && run.stage === RunStage.failed)
          return { kind: "name_taken", runId: other.runId };
        const [resumed] = await tx
          .update(runs)
          .set({
            // A run without any state may have failed before the services agreed to it.
            stage: sql`case when version is null and recovery_folder = '' then 'admitting' else 'active' end`,
            endReason: "",
            endedAt: null,
            leaseUntil: null,
            isPauseRequested: false,
            tenures: 0,
            resumptions: sql`${runs.resumptions} + 1`,
          })
          .where(and(eq(runs.runId, runId), eq(runs.stage, RunStage.failed)))
          .returning();
        return resumed === undefined
          ? { kind: "not_failed", stage: run.stage as RunStage }
          : { kind: "resumed", run: recordOf(resumed) };
      },
      { action: `resume run ${runId}` },
    );
  }

  async overAmong(runIds: readonly string[]): Promise<EndedRun[]> {
    const isReplayable = sql`stage = 'failed' and recovery_folder <> '' and recovery_version is distinct from version
      and ended_at > now() - ${REPLAYABLE_MS}::double precision * interval '1 millisecond'`;
    const rows = await query(
      this.#database,
      (db) =>
        db
          .select({
            runId: runs.runId,
            neededFrom: sql<string>`case when ${isReplayable} then next_sequence else ${Number.MAX_SAFE_INTEGER}::bigint end`,
          })
          .from(runs)
          .where(and(inArray(runs.runId, [...runIds]), notInArray(runs.stage, UNFINISHED))),
      { action: "look for ended runs", isRepeatable: true },
    );
    return rows.map(({ runId, neededFrom }) => ({ runId, neededFrom: Number(neededFrom) }));
  }
}
