/** Follows the bucket RUN_STATE: what each run is doing, what it waits for and since when. */

import { pause } from "@hone/core";
import type { Bucket } from "@hone/messaging";
import type { RunState } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PublishedState } from "../domain/ports.ts";
import { MAX_COLUMN, storable } from "../domain/run-event.ts";
import { phaseWord } from "../domain/run-phase.ts";
import { runTroublesOf } from "../domain/run-troubles.ts";

/** Pause before a failed write is tried again. */
const RETRY_DELAY_MS = 1_000;

export interface WatchStatesOptions {
  readonly bucket: Bucket<RunState>;
  readonly write: (states: readonly PublishedState[]) => Promise<void>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * Stores every change until the signal aborts. When several changes of one run wait, only the latest is written, so at
 * most one state of each run is in memory while the database is slow or does not answer.
 */
export async function watchStates(options: WatchStatesOptions): Promise<void> {
  const { bucket, write, logger, signal } = options;
  const pending = new Map<string, PublishedState>();
  let writing: Promise<void> | undefined;

  const writePending = async (): Promise<void> => {
    while (pending.size > 0 && !signal.aborted) {
      const batch = [...pending.values()];
      pending.clear();
      try {
        await write(batch);
      } catch (error) {
        for (const state of batch) if (!pending.has(state.runId)) pending.set(state.runId, state);
        logger.error("the states of runs could not be stored", { runs: batch.length, error });
        await pause(RETRY_DELAY_MS, signal);
      }
    }
  };

  const onError = (error: unknown) =>
    logger.warn("the states of runs cannot be followed at the moment", { error });
  for await (const { key, value, revision } of bucket.watch(signal, onError)) {
    if (value === undefined) continue;
    const state = publishedStateOf(key, value, revision);
    if (!isStorable(state)) {
      logger.warn("a state of a run cannot be stored", { run: key, version: state.version });
      continue;
    }
    pending.set(key, state);
    writing ??= writePending().finally(() => {
      writing = undefined;
    });
  }
  await writing;
}

function publishedStateOf(runId: string, state: RunState, revision: number): PublishedState {
  return {
    runId,
    revision,
    phase: phaseWord(state.phase),
    version: state.version,
    totalSteps: state.totalSteps,
    waitingFor: storable(state.waitingFor),
    waitingOwner: storable(state.waitingOwner),
    waitingSinceMs: state.waitingSinceMs === 0n ? null : Number(state.waitingSinceMs),
    troubles: state.troubles === undefined ? null : runTroublesOf(state.troubles),
  };
}

/** A state that the database cannot hold must not be written, as all states of its batch would fail with it. */
function isStorable({ version, totalSteps, waitingSinceMs }: PublishedState): boolean {
  return Math.max(version, totalSteps) <= MAX_COLUMN && (waitingSinceMs ?? 0) <= Number.MAX_SAFE_INTEGER;
}
