/**
 * OpenTelemetry for one service: that of this process, or one of several in it, each of which is a resource of its own.
 *
 * OpenTelemetry's own `NodeSDK` is set up, so its variables (OTEL_*) have the effect that people know. Hone's part is what
 * they leave open: the way to Hone's tracer (span-processors.ts), the service's name and instance, limits that fit a
 * training step, and one logger. docs/observability.md lists the variables.
 *
 * Where there is neither a tracer nor an exporter, nothing is loaded and nothing is recorded.
 */

import { DeadlineError, deadline, describeError, InvalidInputError } from "@hone/core";
import type { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import type { NodeSDK } from "@opentelemetry/sdk-node";
import type { Sampler, SpanLimits } from "@opentelemetry/sdk-trace";
import { throttledDiagLogger } from "./diag-logger.ts";
import { TelemetryStartedError } from "./errors.ts";
import type { Logger } from "./logger.ts";
import { DiagLogLevel, diag } from "./otel-api.ts";
import { otelPackage } from "./otel-packages.ts";
import { Attr, AttrValue } from "./semconv.ts";
import { namedExporters, spanProcessors, tracesUrl } from "./span-processors.ts";
import { currentScope } from "./tracing.ts";

export interface TelemetryOptions {
  /** `service.name`: dataset, agent-rollout, … OTEL_SERVICE_NAME goes before it. */
  readonly serviceName: string;
  /** `service.instance.id`: which replica. @default none */
  readonly instanceId?: string | undefined;
  /** Base address of Hone's tracer, such as http://127.0.0.1:4318; absent or empty = it gets no spans. */
  readonly tracerUrl?: string | undefined;
  /** Sent to the tracer, and to nobody else, as a bearer token. @default none */
  readonly tracerToken?: string | undefined;
  /** Share of traces that are recorded, 0 to 1; decided by trace id at the root. OTEL_TRACES_SAMPLER goes before it. @default 1 */
  readonly sampleRatio?: number | undefined;
  /** Takes a line for dropped spans and failed exports, at most one of a kind in 30 s, and for settings without effect. */
  readonly logger?: Logger | undefined;
  /** Longest time that a finished span waits for its batch, milliseconds. OTEL_BSP_SCHEDULE_DELAY goes before it. @default 1_000 */
  readonly exportDelayMs?: number | undefined;
  /** Longest time that one request to the tracer may take, repeated attempts included, milliseconds. @default 10_000 */
  readonly exportTimeoutMs?: number | undefined;
}

/** Running telemetry. */
export interface Telemetry {
  readonly isEnabled: boolean;
  /**
   * Sends what is queued and ends. Idempotent.
   * @returns false when the deadline passed and spans were lost.
   */
  shutdown(options?: { readonly deadlineMs?: number }): Promise<boolean>;
}

/** A training step links every rollout it used; OpenTelemetry's default is 128. */
const MAX_LINKS = 65_536;
/** Texts belong to the episode store; a span carries a glimpse. */
const MAX_ATTRIBUTE_LENGTH = 4_096;
const DEFAULT_EXPORT_TIMEOUT_MS = 10_000;
const DEFAULT_EXPORT_DELAY_MS = 1_000;
const DEFAULT_SHUTDOWN_DEADLINE_MS = 2_000;

const DISABLED: Telemetry = { isEnabled: false, shutdown: async () => true };

/** Services that record, each with its instance: replicas may share a process. */
const recording = new Set<string>();

/**
 * Starts telemetry for this process, or for the service in whose scope it is called ({@link inOwnScope}), or does nothing
 * when there is nowhere to send spans. Loading the SDK holds the event loop up for a tenth of a second.
 * @throws {InvalidInputError} for a malformed address, a ratio outside [0, 1], and OTEL_* variables that the SDK refuses.
 * @throws {TelemetryStartedError} when it runs already, for this process or for a service of this name.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const { serviceName, instanceId, logger } = options;
  const sampleRatio = checkedRatio(options.sampleRatio ?? 1);
  const tracerTracesUrl = options.tracerUrl ? checkedTracesUrl(options.tracerUrl) : undefined;
  const isAnywhere = tracerTracesUrl !== undefined || namedExporters().length > 0;
  if (!isAnywhere) return DISABLED;
  if (otelPackage("@opentelemetry/core").getBooleanFromEnv("OTEL_SDK_DISABLED")) {
    logger?.warn(
      "OTEL_SDK_DISABLED is true: no spans are recorded, and the page shows no traces of this service",
    );
    return DISABLED;
  }
  const scope = currentScope();
  const [other] = recording;
  const own = `${serviceName} ${instanceId ?? ""}`.trim();
  if (other !== undefined && (!scope.isOwn || recording.has(own))) {
    throw new TelemetryStartedError(scope.isOwn ? own : other);
  }
  if (logger !== undefined) logSettingsWithoutEffect(logger, sampleRatio);

  const api = otelPackage("@opentelemetry/api");
  if (recording.size === 0) routeDiagnostics(logger);
  // What an earlier service of this process registered makes room: its tracer is known to its scope.
  for (const registered of [api.trace, api.context, api.propagation, api.logs]) registered.disable();
  let sdk: NodeSDK;
  try {
    sdk = nodeSdk(options, tracerTracesUrl, sampleRatio);
    sdk.start();
  } catch (cause) {
    throw new InvalidInputError(
      `OpenTelemetry refuses its settings, the variables OTEL_*: ${describeError(cause)}`,
      { path: "OTEL_*", allowed: "what docs/observability.md lists" },
      { cause },
    );
  }
  recording.add(own);
  scope.record(api.trace.getTracerProvider());
  if (scope.isOwn) api.trace.disable();

  let ended: Promise<boolean> | undefined;
  const end = async (deadlineMs: number): Promise<boolean> => {
    scope.record(undefined);
    try {
      await deadline("the last spans to be sent", deadlineMs, () => sdk.shutdown());
      return true;
    } catch (error) {
      const why = error instanceof DeadlineError ? "the receiver is slow or away" : "the export failed";
      logger?.warn(`the last spans are lost: ${why}`, { error });
      return false;
    } finally {
      recording.delete(own);
      // A later start may register again: a test, or a process that starts its services anew.
      if (recording.size === 0) {
        for (const registered of [api.trace, api.context, api.propagation, api.logs, diag])
          registered.disable();
      }
    }
  };
  return {
    isEnabled: true,
    shutdown: ({ deadlineMs = DEFAULT_SHUTDOWN_DEADLINE_MS } = {}) => {
      ended ??= end(deadlineMs);
      return ended;
    },
  };
}

/** The SDK with what the environment leaves open; what stands here goes before the environment, or is read from it. */
function nodeSdk(
  options: TelemetryOptions,
  tracerTracesUrl: string | undefined,
  sampleRatio: number,
): NodeSDK {
  const { serviceName, instanceId, logger } = options;
  const { getStringFromEnv } = otelPackage("@opentelemetry/core");
  const { NodeSDK } = otelPackage("@opentelemetry/sdk-node");
  const { defaultResource, envDetector, resourceFromAttributes } = otelPackage("@opentelemetry/resources");
  const processors = spanProcessors({
    tracerTracesUrl,
    tracerToken: options.tracerToken,
    exportDelayMs: options.exportDelayMs ?? DEFAULT_EXPORT_DELAY_MS,
    exportTimeoutMs: options.exportTimeoutMs ?? DEFAULT_EXPORT_TIMEOUT_MS,
    logger,
  });
  // Where OTEL_LOG_LEVEL is set, NodeSDK turns diagnostics to the console: they are turned back at once.
  const isLogLevelSet = getStringFromEnv("OTEL_LOG_LEVEL") !== undefined;
  if (isLogLevelSet) diag.disable();
  const sdk = new NodeSDK({
    contextManager: contextManager(),
    resource: defaultResource().merge(
      resourceFromAttributes({
        [Attr.serviceName]: serviceName,
        [Attr.serviceNamespace]: AttrValue.serviceNamespaceHone,
        ...(instanceId !== undefined && { [Attr.serviceInstanceId]: instanceId }),
      }),
    ),
    // The tracer keeps a trace in pieces, each with its resource: host, system and process would be 700 bytes of each.
    ...(getStringFromEnv("OTEL_NODE_RESOURCE_DETECTORS") === undefined && {
      resourceDetectors: [envDetector],
    }),
    ...ownSampler(sampleRatio),
    spanLimits: spanLimits(),
    spanProcessors: processors,
    // Metrics are at /metrics and logs on standard error; by default NodeSDK would send both to localhost.
    metricReaders: [],
    logRecordProcessors: [],
  });
  if (isLogLevelSet) routeDiagnostics(logger);
  return sdk;
}

/** OpenTelemetry's own complaints, and what OTEL_LOG_LEVEL asks for beside them, go to the service's log. */
function routeDiagnostics(logger: Logger | undefined): void {
  const { diagLogLevelFromString, getStringFromEnv } = otelPackage("@opentelemetry/core");
  diag.disable(); // a logger that is replaced is told so, with a stack
  if (logger === undefined) return;
  const level = getStringFromEnv("OTEL_LOG_LEVEL");
  diag.setLogger(throttledDiagLogger(logger), {
    logLevel: (level === undefined ? undefined : diagLogLevelFromString(level)) ?? DiagLogLevel.WARN,
  });
}

/** One for the process, as services of one process share it: nothing of theirs tells one from another. */
let shared: AsyncLocalStorageContextManager | undefined;

function contextManager(): AsyncLocalStorageContextManager {
  const { AsyncLocalStorageContextManager } = otelPackage("@opentelemetry/context-async-hooks");
  // It stays in use while one service's registration makes room for the next one's.
  class SharedContextManager extends AsyncLocalStorageContextManager {
    override disable(): this {
      return this;
    }
  }
  shared ??= new SharedContextManager();
  return shared;
}

/** Nothing where OTEL_TRACES_SAMPLER names one, which NodeSDK then makes. */
function ownSampler(sampleRatio: number): { sampler?: Sampler } {
  const { getStringFromEnv } = otelPackage("@opentelemetry/core");
  if (getStringFromEnv("OTEL_TRACES_SAMPLER") !== undefined) return {};
  const { ParentBasedSampler, TraceIdRatioBasedSampler } = otelPackage("@opentelemetry/sdk-trace");
  return { sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }) };
}

/** What is given here goes before the environment in NodeSDK, so the environment's limits are given too. */
function spanLimits(): SpanLimits {
  const { getNumberFromEnv } = otelPackage("@opentelemetry/core");
  return {
    linkCountLimit: getNumberFromEnv("OTEL_SPAN_LINK_COUNT_LIMIT") ?? MAX_LINKS,
    attributeValueLengthLimit:
      getNumberFromEnv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT") ??
      getNumberFromEnv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT") ??
      MAX_ATTRIBUTE_LENGTH,
  };
}

function logSettingsWithoutEffect(logger: Logger, sampleRatio: number): void {
  const { getStringFromEnv } = otelPackage("@opentelemetry/core");
  const isSet = (variable: string) => (getStringFromEnv(variable) ?? "none") !== "none";
  if (isSet("OTEL_METRICS_EXPORTER")) {
    logger.warn("OTEL_METRICS_EXPORTER has no effect: a service's metrics are at its /metrics");
  }
  if (isSet("OTEL_LOGS_EXPORTER")) {
    logger.warn("OTEL_LOGS_EXPORTER has no effect: a service writes its log to standard error");
  }
  if (isSet("OTEL_CONFIG_FILE")) {
    logger.warn("OTEL_CONFIG_FILE has no effect: telemetry is set up from variables");
  }
  if (isSet("OTEL_TRACES_SAMPLER") && sampleRatio !== 1) {
    logger.warn(
      "HONE_TRACE_SAMPLE_RATIO has no effect, as OTEL_TRACES_SAMPLER says which traces are recorded",
    );
  }
}

function checkedTracesUrl(tracerUrl: string): string {
  const url = tracesUrl(tracerUrl);
  if (url !== undefined) return url;
  throw new InvalidInputError(
    `"${tracerUrl}" is no address of a tracer: give one like http://127.0.0.1:4318`,
    {
      path: "tracerUrl",
      allowed: "an http(s) address such as http://127.0.0.1:4318",
    },
  );
}

function checkedRatio(ratio: number): number {
  if (Number.isFinite(ratio) && ratio >= 0 && ratio <= 1) return ratio;
  throw new InvalidInputError(`traces cannot be sampled at a ratio of ${ratio}: give a number from 0 to 1`, {
    path: "sampleRatio",
    allowed: "a number from 0 to 1",
  });
}
