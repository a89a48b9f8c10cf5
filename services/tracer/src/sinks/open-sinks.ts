/**
 * The sinks of events by name. A sink is a file or a folder here that exports a function which makes an {@link EventSink}. Each
 * sink has its own consumer, which replicas share (`EventSinkDurable` in libs/messaging), so that no sink waits for another.
 */

import type { EventSinkName } from "@hone/messaging";
import type { Database } from "@hone/storage";
import type { Logger } from "@hone/telemetry";
import type { TracerConfig } from "../config.ts";
import { writeEvents } from "../db/write-events.ts";
import type { EventSink } from "../domain/event-sink.ts";
import { MlflowClient } from "./mlflow/mlflow-client.ts";
import { mlflowSink } from "./mlflow/mlflow-sink.ts";
import { checkpointUpload } from "./mlflow/upload-checkpoint.ts";
import { otlpMetricsSink } from "./otlp-metrics/otlp-metrics-sink.ts";
import { tensorboardSink } from "./tensorboard/tensorboard-sink.ts";

/** What sinks are made from. */
export interface SinkContext {
  readonly config: TracerConfig;
  readonly database: Database;
  readonly logger: Logger;
  /** Ends what a sink is doing when the tracer stops; the event comes again later. */
  readonly signal: AbortSignal;
}

/** @returns undefined for a sink that the operator has not configured; nothing reads its consumer then. */
export function openSinks(context: SinkContext): Record<EventSinkName, EventSink | undefined> {
  const { config, database, logger, signal } = context;
  const { tensorboardDir, mlflow, otlpMetrics } = config.sinks;
  return {
    database: { write: (facts) => writeEvents(database, facts) },
    tensorboard: tensorboardDir === undefined ? undefined : tensorboardSink(tensorboardDir),
    mlflow:
      mlflow &&
      mlflowSink({
        client: new MlflowClient({ ...mlflow, signal }),
        experiment: mlflow.experiment,
        uploadCheckpoint: mlflow.uploadsCheckpoints ? checkpointUpload(config.stateDir, logger) : undefined,
      }),
    otlpMetrics: otlpMetrics && otlpMetricsSink({ ...otlpMetrics, logger, signal }),
  };
}
