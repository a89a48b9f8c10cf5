/** Stores scored episodes; one is acknowledged after it is written. */

import { describeError, type Slot, TerminalError } from "@hone/core";
import {
  type Bus,
  consumeBytes,
  DurableName,
  decodeBytes,
  lastKeyOf,
  outcomeFromWire,
  StreamName,
  slotFromWire,
  subjects,
  UndecodableMessageError,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import { type Episode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { type Context, injectContext, type Logger } from "@hone/telemetry";
import type { BatchWriter } from "../domain/batch-writer.ts";
import type { StoredRollout } from "../domain/ports.ts";
import { rolloutRecordOf } from "../domain/rollout-record.ts";
import { MAX_COLUMN } from "../domain/run-event.ts";
import { storedOrGivenUp } from "./give-up.ts";

/** Two full writes: one is written while the other gathers. */
const CONCURRENCY = 512;
/** `traceparent` of W3C Trace Context: version, trace id, span id, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})/;
const SAMPLED_FLAG = 1;

export function consumeRollouts(bus: Bus, writer: BatchWriter<StoredRollout>, logger: Logger): WorkConsumer {
  return consumeBytes(bus, {
    stream: StreamName.episodes,
    durable: DurableName.scoredEpisodes,
    filter: subjects.rolloutScored("*"),
    concurrency: CONCURRENCY,
    handle: (item) => storedOrGivenUp(item, writer.add(storedRolloutOf(item)), logger),
    onError: (error, { subject, sequence }) =>
      logger.error("a rollout could not be stored", { subject, sequence, error }),
  });
}

/** @throws {UndecodableMessageError} when it is no scored episode, or does not say which rollout it is. */
function storedRolloutOf({ message: scored, subject, trace }: WorkItem<Uint8Array>): StoredRollout {
  const message = decodeBytes(ScoredEpisodeSchema, scored, subject);
  const { episode } = message;
  try {
    if (episode === undefined)
      throw new TerminalError("NO_EPISODE", "Cannot store a rollout as it has no episode");
    const identity = { slot: slotFromWire(episode.slot), outcome: outcomeFromWire(episode.outcome) };
    checkStorable(episode, identity.slot, lastKeyOf(subject));
    return {
      record: rolloutRecordOf(message, episode, identity),
      traceId: traceIdOf(trace),
      scored, // as it came: encoding it anew would cost as much as all the rest
    };
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    throw new UndecodableMessageError(subject, `it names no rollout (${describeError(error)})`, {
      cause: error,
    });
  }
}

/** @throws {TerminalError} when no row could hold it, or it is one of another run than its subject says. */
function checkStorable(
  { runId, attempt, resumption }: Episode,
  { step, task, index }: Slot,
  run: string,
): void {
  if (runId !== run) throw new TerminalError("OTHER_RUN", `Cannot store a rollout as its run must be ${run}`);
  if (Math.max(attempt, resumption, step, task, index) > MAX_COLUMN) {
    throw new TerminalError(
      "TOO_LARGE",
      `Cannot store a rollout as its numbers must lie below ${MAX_COLUMN + 1}`,
    );
  }
}

/** Trace of the rollout; empty when there is none or it was not recorded. */
function traceIdOf(trace: Context): string {
  const headers = new Map<string, string>();
  injectContext(
    {
      get: (key) => headers.get(key),
      set: (key, value) => headers.set(key, value),
      keys: () => [...headers.keys()],
    },
    trace,
  );
  const match = TRACEPARENT.exec(headers.get("traceparent") ?? "");
  if (match === null) return "";
  const [, traceId = "", flags = "00"] = match;
  return (Number.parseInt(flags, 16) & SAMPLED_FLAG) === SAMPLED_FLAG ? traceId : "";
}
