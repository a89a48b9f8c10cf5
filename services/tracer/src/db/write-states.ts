/** Stores the published states of runs; an older revision changes nothing. */

import { type Database, sql, transaction } from "@hone/storage";
import type { PublishedState } from "../domain/ports.ts";
import { runs } from "./schema.ts";

/** Writes all of them or none. */
export async function writeStates(database: Database, states: readonly PublishedState[]): Promise<void> {
  const latest = new Map<string, PublishedState>();
  for (const state of states) {
    const known = latest.get(state.runId);
    if (known === undefined || known.revision < state.revision) latest.set(state.runId, state);
  }
  const rows = [...latest.values()].toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
  await transaction(
    database,
    async (tx) => {
      for (const { runId, revision, ...state } of rows) {
        const set = { ...state, stateRevision: revision };
        await tx
          .insert(runs)
          .values({ runId, firstSequence: 0, ...set })
          .onConflictDoUpdate({
            target: runs.runId,
            set: { ...set, revision: sql`nextval('run_revisions')` },
            setWhere: sql`${runs.stateRevision} < ${revision}`,
          });
      }
    },
    { action: "store run states", maxAttempts: 3 },
  );
}
