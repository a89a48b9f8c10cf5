/**
 * OpenTelemetry set-up, spans, trace context on the bus, the logger, and every span and metric name.
 *
 * @example
 * const telemetry = await startTelemetry({ serviceName: "judge", tracerUrl: config.tracerUrl, logger });
 * await withSpan(SpanName.judge, { parent: extractContext(headers) }, async (span) => { … });
 * await telemetry.shutdown();
 */

export type { Attributes, Context, Link, Span, SpanContext } from "@opentelemetry/api";
export { TelemetryStartedError } from "./errors.ts";
export type { LogFields, Logger, LoggerOptions, LogSink } from "./logger.ts";
export { createLogger, LOG_LEVELS, LogLevel, silentLogger } from "./logger.ts";
export type { InstrumentInfo } from "./metrics/instruments.ts";
export { Instrument } from "./metrics/instruments.ts";
export type { CounterSeries, HistogramSeries, Observation } from "./metrics/metrics.ts";
export { counterOf, histogramOf, observeMetric } from "./metrics/metrics.ts";
export { METRICS_CONTENT_TYPE, metricsText } from "./metrics/metrics-text.ts";
export { context, ROOT_CONTEXT, SpanKind } from "./otel-api.ts";
export type { HeaderCarrier } from "./propagation.ts";
export {
  contextOfTraceparent,
  extractContext,
  injectContext,
  linkTo,
  linkToTraceparent,
  recordedTraceparent,
  traceHeaders,
  traceparentOf,
  traceVariables,
} from "./propagation.ts";
export { isSecretName, REDACTED, redactText } from "./redact.ts";
export type { MetricInfo } from "./semconv.ts";
export { Attr, AttrValue, EventName, METRICS, MetricName, Reduce, SpanName } from "./semconv.ts";
export type { Telemetry, TelemetryOptions } from "./start-telemetry.ts";
export { startTelemetry } from "./start-telemetry.ts";
export type { SpanOptions } from "./tracing.ts";
export {
  contextOf,
  describeSpan,
  inOwnScope,
  recordError,
  runBelow,
  startSpan,
  withSpan,
} from "./tracing.ts";
