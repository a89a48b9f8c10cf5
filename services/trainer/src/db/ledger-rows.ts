/**
 * The ledger: which rollouts were trained, and by which owner.
 *
 * L1: a commit is one transaction: ledger rows, step row and the run's version, all or nothing.
 * L2: it takes effect only where the owner's epoch and version k-1 are still current, or no version where the run begins with k.
 * L3: (run, slot, role) is unique: a rollout that was trained, or a role's part of one, cannot be in a second commit.
 * L5: each step's row is a link of the chain, and the records of its tokens are written in the same transaction.
 * L4: a group of an asynchronous run is trained or given up once, and only while it is open.
 */

import { compareSlots, parseSlotKey } from "@hone/core";
import { and, asc, type Database, eq, gt, isNull, max, or, query, sql, transaction } from "@hone/storage";
import { type Recovery, type RunRecord, RunStage } from "../domain/run/run-record.ts";
import type {
  AskedGroups,
  Commit,
  ControlRequests,
  EvaluationRecord,
  KeptGroups,
  RunEnding,
  RunLedger,
  StepRecord,
  TaskVisitRow,
  TrainedRollout,
} from "../domain/step/ledger.ts";
import { linkOf } from "./chain-rows.ts";
import { RunRows } from "./run-rows.ts";
import { evaluations, groups, ledger, runs, steps, visits } from "./schema.ts";
import { insertTokens } from "./token-rows.ts";
import { fromBytes, trainedRow } from "./trained-rows.ts";

export class LedgerRows implements RunLedger {
  readonly #database: Database;
  readonly #runs: RunRows;

  constructor(database: Database) {
    this.#database = database;
    this.#runs = new RunRows(database);
  }

  load(runId: string): Promise<RunRecord | undefined> {
    return this.#runs.load(runId);
  }

  async renew(runId: string, epoch: number, leaseMs: number): Promise<ControlRequests | undefined> {
    const [row] = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ leaseUntil: sql`now() + ${leaseMs}::double precision * interval '1 millisecond'` })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch)))
          .returning({ isCancelRequested: runs.isCancelRequested, isPauseRequested: runs.isPauseRequested }),
      { action: `renew the lease of ${runId}`, isRepeatable: true, deadlineMs: leaseMs },
    );
    return row;
  }

  async commit(commit: Commit): Promise<boolean> {
    const {
      runId,
      epoch,
      version,
      isFirst,
      stateFolder,
      stateDigest,
      stateFiles,
      arithmetic,
      metrics,
      troubles,
      nextSequence,
      isWhole,
    } = commit;
    const recovery = isWhole
      ? {
          recoveryFolder: stateFolder,
          recoveryDigest: stateDigest,
          recoveryFiles: stateFiles,
          recoveryVersion: version,
          warmUpdates: 0,
        }
      : {};
    const previous = isFirst ? isNull(runs.version) : eq(runs.version, version - 1);
    return transaction(
      this.#database,
      async (tx) => {
        const changed = await tx
          .update(runs)
          .set({
            version,
            stateFolder,
            stateDigest,
            stateFiles,
            arithmetic,
            ...recovery,
            nextSequence,
            tenures: 0,
          })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), eq(runs.stage, RunStage.active), previous))
          .returning({ runId: runs.runId });
        if (changed.length === 0) return false; // L2
        const trained = commit.trained.map((credited) => trainedRow(commit, credited));
        const chain = await linkOf(tx, commit, trained);
        await tx
          .insert(steps)
          .values({ runId, version, epoch, stateFolder, stateDigest, metrics, troubles, chain });
        // One parameter for all rows: thousands of parameters cost more than the rows themselves.
        await tx.execute(
          sql`insert into ledger select * from json_populate_recordset(null::ledger, ${JSON.stringify(trained)}::json)`,
        );
        await insertTokens(tx, runId, version, commit.tokens);
        if (commit.visits !== undefined && commit.visits.length > 0) {
          await tx
            .insert(visits)
            .values(commit.visits.map((visit) => ({ ...visit, runId, success: visit.success ?? null })));
        }
        if (commit.taken !== undefined) {
          await tx.execute(sql`
            update groups set trained_by = ${version}, complete_at = taken."completeAt"
            from json_to_recordset(${JSON.stringify(commit.taken)}::json)
              as taken (step integer, task integer, "completeAt" bigint)
            where ${isListedAndOpen(runId, "taken")}`);
        }
        return true;
      },
      { action: `commit version ${version} of ${runId}` },
    );
  }

  async recordRecovery(
    runId: string,
    epoch: number,
    { folder, digest, files, version, warmUpdates }: Recovery,
    nextSequence: number,
  ): Promise<boolean> {
    const reached = version === undefined ? isNull(runs.version) : eq(runs.version, version);
    const state = { stateFolder: folder, stateDigest: digest };
    return transaction(
      this.#database,
      async (tx) => {
        const changed = await tx
          .update(runs)
          .set({
            recoveryFolder: folder,
            recoveryDigest: digest,
            recoveryFiles: files,
            recoveryVersion: version ?? null,
            warmUpdates,
            ...(version === undefined ? {} : { ...state, stateFiles: files }),
            nextSequence,
            tenures: 0,
          })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch), eq(runs.stage, RunStage.active), reached))
          .returning({ runId: runs.runId });
        if (changed.length === 0) return false;
        if (version !== undefined) {
          await tx
            .update(steps)
            .set(state)
            .where(and(eq(steps.runId, runId), eq(steps.version, version)));
        }
        return true;
      },
      { action: `record a state of ${runId}` },
    );
  }

  async recordEvaluation(
    runId: string,
    epoch: number,
    records: readonly EvaluationRecord[],
    nextSequence: number,
  ): Promise<boolean> {
    return transaction(
      this.#database,
      async (tx) => {
        const changed = await tx
          .update(runs)
          .set({ nextSequence, tenures: 0 })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch)))
          .returning({ runId: runs.runId });
        if (changed.length === 0) return false;
        await tx
          .insert(evaluations)
          .values(records.map((record) => ({ runId, ...record, metrics: { ...record.metrics } })))
          .onConflictDoNothing();
        return true;
      },
      { action: `record an evaluation of ${runId}` },
    );
  }

  async evaluations(runId: string, version: number): Promise<EvaluationRecord[]> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .select()
          .from(evaluations)
          .where(and(eq(evaluations.runId, runId), eq(evaluations.version, version))),
      { action: `read evaluations of ${runId}`, isRepeatable: true },
    );
    return rows.map(({ mode, episodes, metrics, troubles }) => ({
      version,
      mode: mode as EvaluationRecord["mode"],
      episodes,
      metrics,
      ...(troubles !== null && { troubles }),
    }));
  }

  async visits(runId: string): Promise<TaskVisitRow[]> {
    const rows = await query(
      this.#database,
      (db) =>
        db.select().from(visits).where(eq(visits.runId, runId)).orderBy(asc(visits.step), asc(visits.task)),
      { action: `read visits of tasks of ${runId}`, isRepeatable: true },
    );
    return rows.map(({ runId: _, success, ...row }) => ({ ...row, success: success ?? undefined }));
  }

  async askGroups({ runId, epoch, step, asked, givenUp, nextCursor }: AskedGroups): Promise<boolean> {
    return transaction(
      this.#database,
      async (tx) => {
        const owned = await tx
          .select({ runId: runs.runId })
          .from(runs)
          .where(
            and(
              eq(runs.runId, runId),
              eq(runs.epoch, epoch),
              eq(runs.stage, RunStage.active),
              eq(runs.version, step - 1),
            ),
          )
          .for("update");
        if (owned.length === 0) return false;
        const old = givenUp.map((group) => ({ step: group.step, task: group.task }));
        await tx.execute(sql`
          update groups set is_given_up = true
          from json_to_recordset(${JSON.stringify(old)}::json) as old (step integer, task integer)
          where ${isListedAndOpen(runId, "old")}`);
        const rows = asked.map(({ task, cursor }) => ({ runId, step, task, cursor, nextCursor }));
        // A transaction whose answer was lost is made again.
        if (rows.length > 0) await tx.insert(groups).values(rows).onConflictDoNothing();
        return true;
      },
      { action: `record groups of step ${step} of ${runId}` },
    );
  }

  async groups(runId: string, since: number): Promise<KeptGroups> {
    const { step, task, cursor, trainedBy, isGivenUp } = groups;
    const isOpen = and(isNull(trainedBy), eq(isGivenUp, false));
    const rows = await query(
      this.#database,
      (db) =>
        db
          .select({ step, task, cursor, trainedBy, isGivenUp })
          .from(groups)
          .where(and(eq(groups.runId, runId), or(isOpen, gt(trainedBy, since), gt(step, since))))
          .orderBy(asc(step), asc(task)),
      { action: `read the groups of ${runId}`, isRepeatable: true },
    );
    const [last] = await query(
      this.#database,
      (db) =>
        db
          .select({ nextCursor: max(groups.nextCursor), decidedAt: max(groups.completeAt) })
          .from(groups)
          .where(eq(groups.runId, runId)),
      { action: `read the last groups of ${runId}`, isRepeatable: true },
    );
    return {
      groups: rows.map(({ trainedBy: by, ...row }) => ({ ...row, trainedBy: by ?? undefined })),
      nextCursor: last?.nextCursor ?? 0,
      decidedAt: last?.decidedAt ?? 0,
    };
  }

  async trained(runId: string, version: number): Promise<TrainedRollout[]> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .select({
            slot: ledger.slot,
            role: ledger.role,
            reward: ledger.reward,
            advantage: ledger.advantage,
            turnAdvantages: ledger.turnAdvantages,
            tokenAdvantages: ledger.tokenAdvantages,
            returns: ledger.tokenReturns,
          })
          .from(ledger)
          .where(and(eq(ledger.runId, runId), eq(ledger.version, version))),
      { action: `read the ledger of step ${version} of ${runId}`, isRepeatable: true },
    );
    return rows
      .map(({ slot, role, turnAdvantages, tokenAdvantages, returns, ...row }) => ({
        ...row,
        slot: parseSlotKey(slot),
        role: role === "" ? undefined : role,
        ...(turnAdvantages !== null && { turnAdvantages }),
        ...(tokenAdvantages !== null && { tokenAdvantages: fromBytes(tokenAdvantages) }),
        ...(returns !== null && { returns: fromBytes(returns) }),
      }))
      .sort((a, b) => compareSlots(a.slot, b.slot));
  }

  async step(runId: string, version: number): Promise<StepRecord | undefined> {
    const [row] = await query(
      this.#database,
      (db) =>
        db
          .select({ metrics: steps.metrics, troubles: steps.troubles })
          .from(steps)
          .where(and(eq(steps.runId, runId), eq(steps.version, version))),
      { action: `read step ${version} of ${runId}`, isRepeatable: true },
    );
    return row && { metrics: row.metrics, ...(row.troubles !== null && { troubles: row.troubles }) };
  }

  async stateDigest(runId: string, version: number): Promise<string | undefined> {
    const [row] = await query(
      this.#database,
      (db) =>
        db
          .select({ digest: steps.stateDigest })
          .from(steps)
          .where(and(eq(steps.runId, runId), eq(steps.version, version))),
      { action: `read the digest of version ${version} of ${runId}`, isRepeatable: true },
    );
    return row?.digest;
  }

  async end(runId: string, epoch: number, ending: RunEnding, reason: string): Promise<boolean> {
    const rows = await query(
      this.#database,
      (db) =>
        db
          .update(runs)
          .set({ stage: ending, endReason: reason, endedAt: sql`now()`, leaseUntil: null })
          .where(and(eq(runs.runId, runId), eq(runs.epoch, epoch)))
          .returning({ runId: runs.runId }),
      { action: `end run ${runId}`, isRepeatable: true },
    );
    return rows.length > 0;
  }
}

/** L4. @param list name of the listed groups within the statement. */
function isListedAndOpen(runId: string, list: string) {
  const listed = sql.identifier(list);
  return sql`groups.run_id = ${runId} and groups.step = ${listed}.step and groups.task = ${listed}.task
    and groups.trained_by is null and not groups.is_given_up`;
}
