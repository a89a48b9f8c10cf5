/** The store that the views read, on PostgreSQL. */

import type { Database } from "@hone/storage";
import type { TracerStore } from "../domain/ports.ts";
import { addNote, exportNotes, readNotes, removeNote } from "./notes.ts";
import { readRefusals, readRevisions, readRun, readRuns, readStep, readSteps } from "./read-runs.ts";
import { areSpansRemoved, readPieces, readStepSpans } from "./read-spans.ts";
import { readCommonTasks, readTaskRollouts } from "./rollouts/compare-runs.ts";
import { listRollouts } from "./rollouts/list-rollouts.ts";
import { readCost } from "./rollouts/read-cost.ts";
import { areRolloutsRemoved, readRollout, readRolloutCounts } from "./rollouts/read-rollouts.ts";

export function createStore(database: Database): TracerStore {
  return {
    readRuns: () => readRuns(database),
    readRefusals: () => readRefusals(database),
    readRun: (runId) => readRun(database, runId),
    readSteps: (runId, afterStep) => readSteps(database, runId, afterStep),
    readStep: (runId, step) => readStep(database, runId, step),
    readStepSpans: (runId, step, beganAtMs) => readStepSpans(database, runId, step, beganAtMs),
    readRollouts: (runId, filter) => listRollouts(database, runId, filter),
    readRolloutCounts: (runId) => readRolloutCounts(database, runId),
    readRollout: (runId, slot) => readRollout(database, runId, slot),
    areRolloutsRemoved: (runId, split, step) => areRolloutsRemoved(database, runId, split, step),
    readPieces: (traceId) => readPieces(database, traceId),
    areSpansRemoved: () => areSpansRemoved(database),
    readNotes: (runId, slot) => readNotes(database, runId, slot),
    addNote: (note) => addNote(database, note),
    removeNote: (id) => removeNote(database, id),
    exportNotes: (runId, afterId, limit) => exportNotes(database, runId, afterId, limit),
    readCommonTasks: (runIds, split) => readCommonTasks(database, runIds, split),
    readTaskRollouts: (runIds, taskId) => readTaskRollouts(database, runIds, taskId),
    readCost: (runId) => readCost(database, runId),
    readRevisions: () => readRevisions(database),
  };
}
