/** Stores scored episodes; an episode is acknowledged after it is written. */

import { describeError, type Slot, TerminalError } from "@hone/core";
import {
  type Bus,
  consumeBytes,
  DurableName,
  type KeptEpisodes,
  keepFinished,
  lastKeyOf,
  MissingMessageError,
  outcomeFromWire,
  StreamName,
  slotFromWire,
  subjects,
  UndecodableMessageError,
  type WholeEpisode,
  type WorkConsumer,
  type WorkItem,
  wholeEpisode,
} from "@hone/messaging";
import type { Episode } from "@hone/proto-gen/rollout";
import { readFinishReason } from "@hone/rl";
import { type Context, injectContext, type Logger } from "@hone/telemetry";
import type { BatchWriter } from "../domain/batch-writer.ts";
import type { StoredRollout } from "../domain/ports.ts";
import { rolloutRecordOf } from "../domain/rollout-record.ts";
import { MAX_COLUMN } from "../domain/run-event.ts";
import { waitOrGiveUp } from "./give-up.ts";

/** Enough for two full writes, so that one is collected while the other is written. */
const CONCURRENCY = 512;
/** `traceparent` of W3C Trace Context: version, trace id, span id, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})/;
const SAMPLED_FLAG = 1;

/** @param signal ends that finished episodes are received before their scores; what is in work is stored all the same. */
export function consumeRollouts(
  bus: Bus,
  writer: BatchWriter<StoredRollout>,
  logger: Logger,
  signal: AbortSignal,
): WorkConsumer {
  const kept = keepFinished(bus, signal, (error) =>
    logger.warn("receiving finished episodes is interrupted", { error }),
  );
  return consumeBytes(bus, {
    stream: StreamName.episodes,
    durable: DurableName.scoredEpisodes,
    filter: subjects.rolloutScored("*"),
    concurrency: CONCURRENCY,
    handle: async (item) => {
      const rollout = await storedRolloutOf(bus, kept, item, logger);
      if (rollout !== undefined) await waitOrGiveUp(item, writer.add(rollout), logger);
    },
    onError: (error, { subject, sequence }) =>
      logger.error("a rollout could not be stored", { subject, sequence, error }),
  });
}

/**
 * @returns undefined when the finished episode that it points to was dropped to make room for training; the trainer reports
 *   how many were.
 * @throws {UndecodableMessageError} when it is not a scored episode, or does not name its rollout.
 */
async function storedRolloutOf(
  bus: Bus,
  kept: KeptEpisodes,
  { message: body, subject, sequence, trace }: WorkItem<Uint8Array>,
  logger: Logger,
): Promise<StoredRollout | undefined> {
  let scored: WholeEpisode;
  try {
    scored = await wholeEpisode(bus, body, subject, kept);
  } catch (error) {
    if (!(error instanceof MissingMessageError)) throw error;
    logger.warn("a rollout is not shown, because its episode was dropped before it was read", {
      subject,
      sequence,
    });
    return undefined;
  }
  const { message } = scored;
  const { episode } = message;
  try {
    if (episode === undefined)
      throw new TerminalError("NO_EPISODE", "a rollout cannot be stored: it has no episode");
    const identity = { slot: slotFromWire(episode.slot), outcome: outcomeFromWire(episode.outcome) };
    checkStorable(episode, identity.slot, lastKeyOf(subject));
    return {
      record: rolloutRecordOf(message, episode, identity),
      traceId: traceIdOf(trace),
      scored: scored.encode(), // the bytes as they are, as encoding them again would cost as much as everything else here
    };
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    throw new UndecodableMessageError(
      subject,
      `it is not the episode of a rollout (${describeError(error)})`,
      {
        cause: error,
      },
    );
  }
}

/** @throws {TerminalError} when the database cannot hold the episode, the page cannot show it, or its subject names another run. */
function checkStorable(
  { runId, attempt, resumption, turns }: Episode,
  { step, task, index }: Slot,
  run: string,
): void {
  if (runId !== run) {
    throw new TerminalError(
      "OTHER_RUN",
      `a rollout cannot be stored: it is of the run ${runId}, but its subject names ${run}`,
    );
  }
  for (const { finishReason } of turns) readFinishReason(finishReason);
  const largest = Math.max(attempt, resumption, step, task, index);
  if (largest > MAX_COLUMN) {
    throw new TerminalError(
      "TOO_LARGE",
      `a rollout cannot be stored: one of its numbers is ${largest}, and at most ${MAX_COLUMN} is allowed`,
    );
  }
}

/** The rollout's trace id; empty when there is no trace or it was not recorded. */
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
