/**
 * Where spans go: to Hone's tracer, and to the exporters that OpenTelemetry's environment variables name.
 *
 * P1: each way out has a bounded queue of its own. What a queue cannot hold is dropped and counted, so a receiver that is
 *     slow or away costs spans, never work.
 * P2: the way to the tracer takes no setting from OTEL_EXPORTER_OTLP_*: those are meant for the user's receiver, and what
 *     they hold, such as the key of a vendor, is not sent to the tracer.
 * P3: the tracer's token is sent to the tracer alone.
 */

import type { BatchSpanProcessor, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Logger } from "./logger.ts";
import { otelPackage } from "./otel-packages.ts";

export interface SpanProcessorOptions {
  /** Where Hone's tracer takes spans: its whole address. Undefined = it gets none. */
  readonly tracerTracesUrl?: string | undefined;
  /** Sent to the tracer as a bearer token. */
  readonly tracerToken?: string | undefined;
  /** Longest time that a finished span waits for its batch, milliseconds, where OTEL_BSP_SCHEDULE_DELAY names none. */
  readonly exportDelayMs: number;
  /** Longest time of one request to the tracer, repeated attempts included, milliseconds. */
  readonly exportTimeoutMs: number;
  /** Takes a line for each setting that has no effect. */
  readonly logger?: Logger | undefined;
}

/** Spans in a queue at most: six seconds at 2,700 spans a second, some 30 MB. */
const MAX_QUEUED_SPANS = 16_384;
/** Spans in one request: about 250 kB, serialized in a few milliseconds of the event loop. */
const MAX_BATCH_SPANS = 512;

const Variable = {
  exporter: "OTEL_TRACES_EXPORTER",
  endpoint: "OTEL_EXPORTER_OTLP_ENDPOINT",
  tracesEndpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  protocol: "OTEL_EXPORTER_OTLP_PROTOCOL",
  tracesProtocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
} as const;

/** What each name in OTEL_TRACES_EXPORTER stands for; `none` stands for no exporter. */
const EXPORTERS: Readonly<Record<string, (queue: QueueSize, logger: Logger | undefined) => SpanProcessor>> = {
  otlp: (queue, logger) => batched(otlpExporter(queue, logger), queue),
  zipkin: (queue) => batched(new (otelPackage("@opentelemetry/exporter-zipkin").ZipkinExporter)(), queue),
  console: () => {
    const { ConsoleSpanExporter, SimpleSpanProcessor } = otelPackage("@opentelemetry/sdk-trace");
    return new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() });
  },
};

/**
 * The exporters that the environment names: those of OTEL_TRACES_EXPORTER, or `otlp` where only an OTLP endpoint is named.
 * Without either there are none, though OpenTelemetry would then try http://localhost:4318.
 */
export function namedExporters(): readonly string[] {
  const { getStringFromEnv, getStringListFromEnv } = otelPackage("@opentelemetry/core");
  const names = [...new Set(getStringListFromEnv(Variable.exporter) ?? [])];
  if (names.length > 0) return names.includes("none") ? [] : names;
  const endpoint = getStringFromEnv(Variable.tracesEndpoint) ?? getStringFromEnv(Variable.endpoint);
  return endpoint === undefined ? [] : ["otlp"];
}

/** Loads what the ways out need and makes them. */
export function spanProcessors(options: SpanProcessorOptions): SpanProcessor[] {
  const queue = queueSize(options.exportDelayMs);
  const { tracerTracesUrl, logger } = options;
  const processors: SpanProcessor[] = [];
  if (tracerTracesUrl !== undefined) {
    processors.push(batched(tracerExporter(tracerTracesUrl, options, queue), queue));
  }
  for (const name of namedExporters()) {
    const make = EXPORTERS[name];
    if (make === undefined) {
      logger?.warn(
        `OTEL_TRACES_EXPORTER names "${name}", which is unknown and has no effect; known are ${Object.keys(EXPORTERS).join(", ")} and none`,
      );
    } else if (name === "otlp" && tracerTracesUrl !== undefined && otlpTracesUrl() === tracerTracesUrl) {
      logger?.debug("the OTLP endpoint of the environment is Hone's tracer, which gets each span once");
    } else {
      processors.push(make(queue, logger));
    }
  }
  return processors;
}

/** How much a queue holds and how it is emptied. */
interface QueueSize {
  readonly maxSpans: number;
  readonly batchSpans: number;
  readonly delayMs: number;
  readonly timeoutMs: number | undefined;
  /** Requests at once: all of a full queue, so that the flush at the end is not refused. */
  readonly concurrency: number;
}

function queueSize(delayMs: number): QueueSize {
  const maxSpans = positiveFromEnv("OTEL_BSP_MAX_QUEUE_SIZE") ?? MAX_QUEUED_SPANS;
  const batchSpans = Math.min(positiveFromEnv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") ?? MAX_BATCH_SPANS, maxSpans);
  return {
    maxSpans,
    batchSpans,
    delayMs: positiveFromEnv("OTEL_BSP_SCHEDULE_DELAY") ?? delayMs,
    timeoutMs: positiveFromEnv("OTEL_BSP_EXPORT_TIMEOUT"),
    concurrency: Math.ceil(maxSpans / batchSpans),
  };
}

/** Undefined for what is no positive number, as OpenTelemetry takes these variables. */
function positiveFromEnv(variable: string): number | undefined {
  const value = otelPackage("@opentelemetry/core").getNumberFromEnv(variable);
  return value !== undefined && value > 0 ? value : undefined;
}

function batched(exporter: SpanExporter, queue: QueueSize): BatchSpanProcessor {
  const { BatchSpanProcessor } = otelPackage("@opentelemetry/sdk-trace");
  return new BatchSpanProcessor({
    exporter,
    maxQueueSize: queue.maxSpans,
    maxExportBatchSize: queue.batchSpans,
    scheduledDelayMillis: queue.delayMs,
    ...(queue.timeoutMs !== undefined && { exportTimeoutMillis: queue.timeoutMs }),
  });
}

/** P2, P3: made of the parts of OTLPTraceExporter, which would add what OTEL_EXPORTER_OTLP_* says. */
function tracerExporter(url: string, options: SpanProcessorOptions, queue: QueueSize): SpanExporter {
  const { OTLPExporterBase, CompressionAlgorithm } = otelPackage("@opentelemetry/otlp-exporter-base");
  const { createOtlpHttpExportDelegate, httpAgentFactoryFromOptions } = otelPackage(
    "@opentelemetry/otlp-exporter-base/node-http",
  );
  const { ProtobufTraceSerializer, TraceExporterMetricsHelper } = otelPackage(
    "@opentelemetry/otlp-transformer",
  );
  const headers: Record<string, string> = {
    "content-type": "application/x-protobuf",
    ...(options.tracerToken !== undefined && { authorization: `Bearer ${options.tracerToken}` }),
  };
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(
      {
        url,
        headers: async () => headers,
        agentFactory: httpAgentFactoryFromOptions({ keepAlive: true }),
        compression: CompressionAlgorithm.NONE,
        timeoutMillis: options.exportTimeoutMs,
        concurrencyLimit: queue.concurrency,
      },
      ProtobufTraceSerializer,
      "otlp_http_span_exporter",
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

/** The user's receiver; the exporter itself reads the other variables of OTEL_EXPORTER_OTLP_*. */
function otlpExporter(
  { concurrency: concurrencyLimit }: QueueSize,
  logger: Logger | undefined,
): SpanExporter {
  const protocol = otlpProtocol();
  switch (protocol) {
    case "grpc":
      return new (otelPackage("@opentelemetry/exporter-trace-otlp-grpc").OTLPTraceExporter)({
        concurrencyLimit,
      });
    case "http/json":
      return new (otelPackage("@opentelemetry/exporter-trace-otlp-http").OTLPTraceExporter)({
        concurrencyLimit,
      });
    default:
      if (protocol !== "http/protobuf") {
        logger?.warn(
          `the OTLP protocol "${protocol}" of the environment is unknown, http/protobuf is used; known are grpc, http/json and http/protobuf`,
        );
      }
      return new (otelPackage("@opentelemetry/exporter-trace-otlp-proto").OTLPTraceExporter)({
        concurrencyLimit,
      });
  }
}

function otlpProtocol(): string {
  const { getStringFromEnv } = otelPackage("@opentelemetry/core");
  const named = getStringFromEnv(Variable.tracesProtocol) ?? getStringFromEnv(Variable.protocol);
  return named?.trim() ?? "http/protobuf";
}

/** Where the environment's OTLP exporter sends, if that is HTTP. */
function otlpTracesUrl(): string | undefined {
  if (otlpProtocol() === "grpc") return undefined;
  const { getStringFromEnv } = otelPackage("@opentelemetry/core");
  const base = getStringFromEnv(Variable.endpoint);
  const url = getStringFromEnv(Variable.tracesEndpoint) ?? (base === undefined ? undefined : tracesUrl(base));
  return url !== undefined && URL.canParse(url) ? new URL(url).href : undefined;
}

/** The path at which an OTLP/HTTP receiver takes spans. @returns undefined for what is no http(s) address. */
export function tracesUrl(endpoint: string): string | undefined {
  if (!URL.canParse(endpoint)) return undefined;
  const url = new URL(endpoint);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url.href;
}
