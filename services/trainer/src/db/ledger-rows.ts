/**
 * The ledger: which rollouts were trained, and by which owner.
 *
 * L1: a commit is one transaction: ledger rows, step row and the run's version, all or nothing.
 * L2: it takes effect only where the owner's epoch and version k-1 are still current, or no version where the run begins with k.
 * L3: (run, slot, role) is unique: a rollout that was trained, or a role's part of one, cannot be in a second commit.
 * L4: a group of an asynchronous run is trained or given up once, and only while it is open.
 */

import { compareSlots, parseSlotKey, slotKey } from "@hone/core";
import { rolloutTokenCount, versionRange } from "@hone/rl";
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
import { RunRows } from "./run-rows.ts";
import { evaluations, groups, ledger, runs, steps, visits } from "./schema.ts";

type LedgerColumn = (typeof ledger)["_"]["columns"][keyof (typeof ledger)["_"]["columns"]]["_"]["name"];

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
        await tx.insert(steps).values({ runId, version, epoch, stateFolder, stateDigest, metrics, troubles });
        // One parameter for all rows: thousands of parameters cost more than the rows themselves.
        const rows = JSON.stringify(commit.trained.map((credited) => rowOf(commit, credited)));
        await tx.execute(
          sql`insert into ledger select * from json_populate_recordset(null::ledger, ${rows}::json)`,
        );
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

/** A row of the ledger, keyed by column names. */
function rowOf(
  commit: Commit,
  { rollout, reward, advantage, turnAdvantages, tokenAdvantages, returns }: Commit["trained"][number],
): Record<LedgerColumn, string | number | null | readonly number[]> {
  const versions = versionRange(rollout);
  return {
    run_id: commit.runId,
    slot: slotKey(rollout.slot),
    role: rollout.role ?? "",
    version: commit.version,
    attempt: rollout.attempt,
    outcome: rollout.outcome,
    sample_count: rollout.samples.length,
    sampled_tokens: rolloutTokenCount(rollout),
    lowest_version: versions?.lowest ?? null,
    highest_version: versions?.highest ?? null,
    reward,
    advantage,
    sequence: rollout.sequence,
    state_digest: commit.stateDigest,
    turn_advantages: turnAdvantages ?? null,
    token_advantages: tokenAdvantages === undefined ? null : toBytes(tokenAdvantages),
    token_returns: returns === undefined ? null : toBytes(returns),
  };
}

/** As float32, which is what engines are given: the text of a bytea. */
function toBytes(values: Float64Array): string {
  const bytes = Buffer.alloc(values.length * Float32Array.BYTES_PER_ELEMENT);
  values.forEach((value, index) => {
    bytes.writeFloatLE(value, index * Float32Array.BYTES_PER_ELEMENT);
  });
  return `\\x${bytes.toString("hex")}`;
}

function fromBytes(bytes: Uint8Array): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float64Array.from({ length: bytes.length / Float32Array.BYTES_PER_ELEMENT }, (_, index) =>
    view.getFloat32(index * Float32Array.BYTES_PER_ELEMENT, true),
  );
}
