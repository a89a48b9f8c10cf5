/**
 * Stores facts about runs, a batch in one transaction.
 *
 * E1: storing a fact twice has the same effect as storing it once: what happens once is inserted where it is missing, and
 *     what changes is overwritten only by a later event than the one that set it.
 * E2: every run that a batch changes gets a new revision, by which open pages notice the change.
 */

import { type Database, type Queryable, sql, transaction } from "@hone/storage";
import type { RunFact } from "../domain/run-event.ts";
import { evaluations, refusals, runs, steps } from "./schema.ts";

type Fact<Kind extends RunFact["kind"]> = Extract<RunFact, { kind: Kind }>;

/** Writes all of the facts or none. */
export async function writeEvents(database: Database, facts: readonly RunFact[]): Promise<void> {
  const ordered = facts.toSorted((a, b) => a.sequence - b.sequence);
  await transaction(
    database,
    async (tx) => {
      await ensureRuns(tx, ordered);
      for (const fact of latestPerRun(ordered, "accepted")) await writeAccepted(tx, fact);
      await insertSteps(tx, ofKind(ordered, "step_completed"));
      for (const fact of ofKind(ordered, "evaluated")) await writeEvaluation(tx, fact);
      for (const fact of latestPerRun(ordered, "step_begun", "progress", "step_completed"))
        await writeProgress(tx, fact);
      for (const fact of latestPerRun(ordered, "ended")) await writeEnded(tx, fact);
      for (const fact of latestPerRun(ordered, "resumed")) await writeResumed(tx, fact);
      for (const fact of latestPerRun(ordered, "unread")) await writeUnread(tx, fact);
      await insertRefusals(tx, ofKind(ordered, "refused"));
    },
    { action: "store events", maxAttempts: 3 },
  );
}

/** Makes sure that each run has a row and a new revision (E2). All replicas write runs in the same order, which prevents deadlocks. */
async function ensureRuns(tx: Queryable, facts: readonly RunFact[]): Promise<void> {
  const first = new Map<string, number>();
  for (const fact of facts) {
    if (fact.kind !== "refused" && !first.has(fact.runId)) first.set(fact.runId, fact.sequence);
  }
  if (first.size === 0) return;
  const rows = [...first.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([runId, firstSequence]) => ({ runId, firstSequence }));
  await tx
    .insert(runs)
    .values(rows)
    .onConflictDoUpdate({ target: runs.runId, set: { revision: sql`nextval('run_revisions')` } });
}

async function writeAccepted(tx: Queryable, fact: Fact<"accepted">): Promise<void> {
  await tx
    .update(runs)
    .set({
      configJson: fact.configJson,
      acceptedAtMs: fact.timeMs,
    })
    .where(sql`${runs.runId} = ${fact.runId} and ${runs.acceptedAtMs} is null`);
}

async function insertSteps(tx: Queryable, facts: readonly Fact<"step_completed">[]): Promise<void> {
  if (facts.length === 0) return;
  const rows = facts.map(({ runId, step, version, timeMs, metrics }) => ({
    runId,
    step,
    version,
    timeMs,
    metrics,
  }));
  await tx.insert(steps).values(rows).onConflictDoNothing();
}

async function writeEvaluation(tx: Queryable, fact: Fact<"evaluated">): Promise<void> {
  const { runId, version, mode, episodes, timeMs, metrics } = fact;
  await tx
    .insert(evaluations)
    .values({ runId, version, mode, episodes, timeMs, metrics })
    .onConflictDoUpdate({
      target: [evaluations.runId, evaluations.version, evaluations.mode],
      set: { episodes, timeMs, metrics },
      setWhere: sql`${evaluations.timeMs} <= ${timeMs}`,
    });
}

async function writeProgress(
  tx: Queryable,
  fact: Fact<"step_begun"> | Fact<"progress"> | Fact<"step_completed">,
): Promise<void> {
  await tx
    .update(runs)
    .set({
      step: fact.step,
      progress: fact.kind === "progress" ? fact.progress : null,
      progressSequence: fact.sequence,
      ...(fact.kind === "step_completed" && { totalSteps: fact.totalSteps }),
    })
    .where(sql`${runs.runId} = ${fact.runId} and ${runs.progressSequence} < ${fact.sequence}`);
}

async function writeEnded(tx: Queryable, fact: Fact<"ended">): Promise<void> {
  await tx
    .update(runs)
    .set({
      phase: fact.phase,
      endedAtMs: fact.timeMs,
      endReason: fact.reason,
      checkpoint: fact.checkpoint,
      waitingFor: "",
      waitingOwner: "",
      waitingSinceMs: null,
      progress: null,
      resumption: fact.resumption,
    })
    .where(sql`${runs.runId} = ${fact.runId} and ${runs.resumption} <= ${fact.resumption}`);
}

/** Clears an earlier end of the run, unless that end belongs to this resumption. */
async function writeResumed(tx: Queryable, { runId, resumption }: Fact<"resumed">): Promise<void> {
  await tx
    .update(runs)
    .set({ endedAtMs: null, endReason: "", checkpoint: "", resumption })
    .where(sql`${runs.runId} = ${runId} and ${runs.resumption} < ${resumption}`);
}

async function writeUnread(tx: Queryable, { runId, rollouts }: Fact<"unread">): Promise<void> {
  await tx
    .update(runs)
    .set({ unreadRollouts: rollouts })
    .where(sql`${runs.runId} = ${runId} and ${runs.unreadRollouts} < ${rollouts}`);
}

async function insertRefusals(tx: Queryable, facts: readonly Fact<"refused">[]): Promise<void> {
  if (facts.length === 0) return;
  await tx
    .insert(refusals)
    .values(facts.map(({ requestSequence, timeMs, problems }) => ({ requestSequence, timeMs, problems })))
    .onConflictDoNothing();
}

function ofKind<Kind extends RunFact["kind"]>(facts: readonly RunFact[], kind: Kind): Fact<Kind>[] {
  return facts.filter((fact): fact is Fact<Kind> => fact.kind === kind);
}

/** The last fact of these kinds for each run, sorted by run so that all replicas write in the same order. */
function latestPerRun<Kind extends RunFact["kind"]>(
  facts: readonly RunFact[],
  ...kinds: Kind[]
): Fact<Kind>[] {
  const latest = new Map<string, Fact<Kind>>();
  for (const kind of kinds) {
    for (const fact of ofKind(facts, kind)) {
      const known = latest.get(fact.runId);
      if (known === undefined || known.sequence < fact.sequence) latest.set(fact.runId, fact);
    }
  }
  return [...latest.values()].toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
}
