/**
 * The tracer stores and shows the events of runs, every rollout and every span.
 *
 *   EVENTS ─▶ batched writes ─▶ sinks, of which the database is one
 *   EPISODES (scored), RUN_STATE ─▶ batched writes ─▶ PostgreSQL ─▶ API and page
 *   OTLP/HTTP ─▶ span intake ─▶ batched writes ─▶ PostgreSQL
 *             └▶ forwarder (HONE_OTLP_FORWARD)
 *
 * All its state is in the database. Replicas share the streams by durable consumers, and each answers from the database.
 */

import { pause, TerminalError } from "@hone/core";
import { BucketName, type EventSinkName, isSinkInOrder, openBucket } from "@hone/messaging";
import { RunStateSchema } from "@hone/proto-gen/run";
import { READY, type ServiceContext, type ServiceDefinition } from "@hone/service-kit";
import type { Database } from "@hone/storage";
import { Instrument, type Logger, observeMetric } from "@hone/telemetry";
import { readTracerConfig, type TracerConfig } from "./config.ts";
import { migrations } from "./db/migrations.ts";
import { enforceRetention, type RetentionLimits } from "./db/retention.ts";
import { indexWords } from "./db/rollouts/index-words.ts";
import { writeRollouts, writeTrainings } from "./db/rollouts/write-rollouts.ts";
import { createStore } from "./db/store.ts";
import { writeSpans } from "./db/write-spans.ts";
import { writeStates } from "./db/write-states.ts";
import { BatchWriter } from "./domain/batch-writer.ts";
import type { EventSink } from "./domain/event-sink.ts";
import type { TracePiece } from "./domain/otlp/split-by-trace.ts";
import type { TrainFigures } from "./domain/otlp/train-figures.ts";
import type { StoredRollout } from "./domain/ports.ts";
import type { RunFact } from "./domain/run-event.ts";
import { SpanIntake } from "./domain/span-intake.ts";
import { TokenTexts } from "./http/api/token-texts.ts";
import { createApp } from "./http/app.ts";
import { LiveFeed } from "./http/live-feed.ts";
import { OtlpForwarder } from "./http/otlp-forwarder.ts";
import { askForFrames } from "./nats/ask-for-frames.ts";
import { askLedger } from "./nats/ask-ledger.ts";
import { consumeEvents } from "./nats/consume-events.ts";
import { consumeRollouts } from "./nats/consume-rollouts.ts";
import { personsActions } from "./nats/persons-actions.ts";
import { watchStack } from "./nats/watch-stack.ts";
import { watchStates } from "./nats/watch-states.ts";
import { openSinks } from "./sinks/open-sinks.ts";

/** Rows of one write: enough that the cost for each row is small, and few enough that a write takes milliseconds. */
const MAX_BATCH = 256;
/** What a page shows is behind by at most this time and the time of a write. */
const EVENT_DELAY_MS = 100;
const ROLLOUT_DELAY_MS = 250;
const TRAINING_DELAY_MS = 1_000;
/** Spans need not be shown at once. Those of one rollout come within seconds, and this delay lets them become one row. */
const SPAN_DELAY_MS = 4_000;
/** These have a few megabytes. */
const MAX_SPAN_BATCH = 2_048;
const RETENTION_INTERVAL_MS = 60_000;

export const tracerService: ServiceDefinition<TracerConfig> = {
  name: "tracer",
  readConfig: readTracerConfig,
  start: startTracer,
};

async function startTracer({ config, bus, logger, openDatabase }: ServiceContext<TracerConfig>) {
  const database = await openDatabase({ schema: "tracer", migrations });
  const stopping = new AbortController();
  const { signal } = stopping;

  const rollouts = writerOf<StoredRollout>(ROLLOUT_DELAY_MS, (items) => writeRollouts(database, items));
  const pieces = writerOf<TracePiece>(SPAN_DELAY_MS, (items) => writeSpans(database, items), MAX_SPAN_BATCH);
  const trainings = writerOf<TrainFigures>(TRAINING_DELAY_MS, (items) => writeTrainings(database, items));

  const intake = new SpanIntake(pieces, trainings, logger);
  const forwarder =
    config.otlpForward === undefined ? undefined : new OtlpForwarder(config.otlpForward, logger);
  const intakeCounts = () => ({
    ...intake.counts,
    forwarded: forwarder?.counts.forwarded ?? 0,
    forwardDropped: forwarder?.counts.dropped ?? 0,
  });
  const observers = [
    observeMetric(Instrument.spans, () =>
      Object.entries(intakeCounts()).map(([name, value]) => ({ labels: { result: snakeCase(name) }, value })),
    ),
    observeMetric(Instrument.spanPiecesWaiting, () => [{ labels: {}, value: pieces.waiting }]),
  ];
  const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
  const sinks = openSinks({ config, database, logger, signal });
  const consumers = [
    ...(Object.entries(sinks) as [EventSinkName, EventSink | undefined][]).flatMap(([name, sink]) => {
      if (sink === undefined) return [];
      if (isSinkInOrder(name)) return [consumeEvents(bus, name, (fact) => sink.write([fact]), logger)];
      const writer = writerOf<RunFact>(EVENT_DELAY_MS, (facts) => sink.write(facts));
      return [consumeEvents(bus, name, (fact) => writer.add(fact), logger)];
    }),
    consumeRollouts(bus, rollouts, logger, signal),
  ];
  const background = [
    watchStates({ bucket, write: (states) => writeStates(database, states), logger, signal }),
    retain(database, config, logger, signal),
    indexWords(database, logger, signal),
  ];
  if (config.tracerToken === undefined)
    logger.warn(
      "anybody who reaches this address may read runs and send spans, as HONE_TRACER_TOKEN is not set",
    );
  const store = createStore(database);
  const watch = watchStack(bus, database, logger, signal);
  const routes = await createApp({
    api: {
      store,
      tokenTexts: new TokenTexts(config.stateDir, logger),
      askForFrames: askForFrames(bus),
      askLedger: askLedger(bus),
      health: () => watch.health,
      intakeCounts,
      jaegerUrl: config.jaegerUrl,
      price: config.price,
      logger,
    },
    actions: personsActions(bus),
    otlp: { intake, forwarder, maxBodyBytes: config.maxBodyBytes },
    feed: new LiveFeed(() => store.readRevisions(), logger, signal),
    logger,
    token: config.tracerToken,
  });

  return {
    routes,
    readiness: () => READY,
    drain: async (drainSignal: AbortSignal) => {
      stopping.abort(new TerminalError("STOPPING", "the tracer is stopping"));
      await Promise.all(consumers.map((consumer) => consumer.drain()));
      await Promise.all([pieces.flush(), trainings.flush(), forwarder?.close(drainSignal), ...background]);
    },
    close: async () => {
      for (const observer of observers) observer[Symbol.dispose]();
      await Promise.all(consumers.map((consumer) => consumer.stop()));
    },
  };
}

/** Turns a name into the form of Prometheus labels. */
function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function writerOf<Item>(
  maxDelayMs: number,
  write: (items: readonly Item[]) => Promise<void>,
  maxItems = MAX_BATCH,
): BatchWriter<Item> {
  // An error that is not retryable is due to the items that were written.
  return new BatchWriter({
    write,
    maxItems,
    maxDelayMs,
    isItemsFault: (error) => error instanceof TerminalError,
  });
}

/** Deletes rows beyond the limits at regular intervals, until the signal aborts. */
async function retain(
  database: Database,
  limits: RetentionLimits,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(RETENTION_INTERVAL_MS, signal);
    if (signal.aborted) return;
    try {
      const gone = await enforceRetention(database, limits);
      if (gone.spans + gone.rollouts > 0) logger.debug("old rows were deleted", { ...gone });
    } catch (error) {
      logger.warn("old rows could not be deleted; this is tried again in a minute", { error });
    }
  }
}
