/** Stores, reads and removes notes of people. */

import { and, asc, type Database, eq, gt, query, sql } from "@hone/storage";
import { type ExportedNote, MAX_NOTES, type NewNote, type Note } from "../domain/people/note.ts";
import { READ_DEADLINE_MS } from "./read-deadline.ts";
import { notes, rollouts } from "./schema.ts";

const READ = { isRepeatable: true, deadlineMs: READ_DEADLINE_MS } as const;

/** @returns the note, or undefined where the rollout has as many as it may have. */
export async function addNote(database: Database, note: NewNote): Promise<Note | undefined> {
  return query(
    database,
    async (db) => {
      const [known] = await db
        .select({ count: sql<number>`count(*)::int` })
        .from(notes)
        .where(and(eq(notes.runId, note.runId), eq(notes.slot, note.slot)));
      if ((known?.count ?? 0) >= MAX_NOTES) return undefined;
      const [added] = await db.insert(notes).values(note).returning();
      return added;
    },
    { action: "store a note" },
  );
}

/** @returns whether there was such a note. */
export async function removeNote(database: Database, id: number): Promise<boolean> {
  const removed = await query(
    database,
    (db) => db.delete(notes).where(eq(notes.id, id)).returning({ id: notes.id }),
    {
      action: "remove a note",
    },
  );
  return removed.length > 0;
}

/** Oldest first. */
export async function readNotes(database: Database, runId: string, slot: string): Promise<Note[]> {
  return query(
    database,
    (db) =>
      db
        .select()
        .from(notes)
        .where(and(eq(notes.runId, runId), eq(notes.slot, slot)))
        .orderBy(asc(notes.id)),
    { ...READ, action: "read notes" },
  );
}

/** The notes after one, oldest first. @param runId undefined = of all runs. */
export async function exportNotes(
  database: Database,
  runId: string | undefined,
  afterId: number,
  limit: number,
): Promise<ExportedNote[]> {
  return query(
    database,
    (db) =>
      db
        .select({
          id: notes.id,
          runId: notes.runId,
          slot: notes.slot,
          turn: notes.turn,
          author: notes.author,
          text: notes.text,
          score: notes.score,
          createdAtMs: notes.createdAtMs,
          outcome: rollouts.outcome,
          reward: rollouts.reward,
          taskId: rollouts.taskId,
        })
        .from(notes)
        .leftJoin(rollouts, and(eq(rollouts.runId, notes.runId), eq(rollouts.slot, notes.slot)))
        .where(and(gt(notes.id, afterId), runId === undefined ? undefined : eq(notes.runId, runId)))
        .orderBy(asc(notes.id))
        .limit(limit),
    { ...READ, action: "export notes" },
  );
}
