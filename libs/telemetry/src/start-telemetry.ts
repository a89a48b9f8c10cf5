/**
 * OpenTelemetry for one service: that of this process, or one of several in it, each of which is a resource of its own.
 *
 * Without an endpoint nothing is loaded and nothing is recorded. With one, spans go to an OTLP/HTTP receiver in
 * protobuf, through a bounded queue: a receiver that is slow or away costs spans, never work. The SDK is loaded
 * only then, and of it only what traces need: all of `@opentelemetry/sdk-node` takes 0.6 s and 60 MB in each process.
 */

import { DeadlineError, deadline, InvalidInputError } from "@hone/core";
import { context, DiagLogLevel, diag, propagation, trace } from "@opentelemetry/api";
import { throttledDiagLogger } from "./diag-logger.ts";
import { TelemetryStartedError } from "./errors.ts";
import type { Logger } from "./logger.ts";
import { Attr, AttrValue } from "./semconv.ts";
import { currentScope } from "./tracing.ts";

export interface TelemetryOptions {
  /** `service.name`: dataset, agent-rollout, … */
  readonly serviceName: string;
  /** `service.instance.id`: which replica. @default none */
  readonly instanceId?: string | undefined;
  /** Base address of the OTLP/HTTP receiver, such as http://127.0.0.1:4318; absent or empty = no telemetry. */
  readonly otlpEndpoint?: string | undefined;
  /** Sent to the receiver as a bearer token. @default none */
  readonly otlpToken?: string | undefined;
  /** Share of traces that are recorded, 0 to 1; decided by trace id at the root. @default 1 */
  readonly sampleRatio?: number | undefined;
  /** Told of dropped spans and failed exports, at most once in 30 s. */
  readonly logger?: Logger | undefined;
  /** Longest time that a finished span waits for its batch, milliseconds. @default 1_000 */
  readonly exportDelayMs?: number | undefined;
  /** Longest time that one request to the receiver may take, tries again included, milliseconds. @default 10_000 */
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

/** Spans in the queue at most: six seconds at 2,700 spans a second, some 30 MB. Above it they are dropped and counted. */
const MAX_QUEUED_SPANS = 16_384;
/** Spans in one request: about 250 kB, serialized in a few milliseconds of the event loop. */
const MAX_BATCH_SPANS = 512;
/** A training step links every rollout it used; OpenTelemetry's default is 128. */
const MAX_LINKS = 65_536;
/** Texts belong to the episode store; a span carries a glimpse. */
const MAX_ATTRIBUTE_LENGTH = 4_096;
/** Requests at once: all of a full queue, so that the flush at the end is not refused. */
const MAX_CONCURRENT_EXPORTS = MAX_QUEUED_SPANS / MAX_BATCH_SPANS;
const DEFAULT_EXPORT_TIMEOUT_MS = 10_000;
const DEFAULT_EXPORT_DELAY_MS = 1_000;
const DEFAULT_SHUTDOWN_DEADLINE_MS = 2_000;

const DISABLED: Telemetry = { isEnabled: false, shutdown: async () => true };

/** Services that record, each with its instance: replicas may share a process. */
const recording = new Set<string>();
let areGlobalsRegistered = false;

/**
 * Starts telemetry for this process, or for the service in whose scope it is called ({@link inOwnScope}), or does nothing when
 * there is no endpoint.
 * @throws {InvalidInputError} for a malformed endpoint or a ratio outside [0, 1].
 * @throws {TelemetryStartedError} when it runs already, for this process or for a service of this name.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  const sampleRatio = checkedRatio(options.sampleRatio ?? 1);
  if (options.otlpEndpoint === undefined || options.otlpEndpoint === "") return DISABLED;
  const url = tracesUrl(options.otlpEndpoint);
  const { serviceName } = options;
  const scope = currentScope();
  const [other] = recording;
  const own = `${serviceName} ${options.instanceId ?? ""}`.trim();
  if (other !== undefined && (!scope.isOwn || recording.has(own))) {
    throw new TelemetryStartedError(scope.isOwn ? own : other);
  }
  recording.add(own);

  const [
    { OTLPTraceExporter },
    sdkTrace,
    { resourceFromAttributes },
    { W3CTraceContextPropagator },
    { AsyncLocalStorageContextManager },
  ] = await Promise.all([
    import("@opentelemetry/exporter-trace-otlp-proto"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/core"),
    import("@opentelemetry/context-async-hooks"),
  ]);
  if (options.logger !== undefined && !areGlobalsRegistered) {
    diag.setLogger(throttledDiagLogger(options.logger), {
      logLevel: DiagLogLevel.WARN,
      suppressOverrideMessage: true,
    });
  }
  const exportTimeoutMs = options.exportTimeoutMs ?? DEFAULT_EXPORT_TIMEOUT_MS;
  const exporter = new OTLPTraceExporter({
    url,
    ...(options.otlpToken !== undefined && { headers: { authorization: `Bearer ${options.otlpToken}` } }),
    timeoutMillis: exportTimeoutMs,
    concurrencyLimit: MAX_CONCURRENT_EXPORTS,
  });
  const provider = new sdkTrace.TracerProvider({
    resource: resourceFromAttributes({
      [Attr.serviceName]: serviceName,
      [Attr.serviceNamespace]: AttrValue.serviceNamespaceHone,
      ...(options.instanceId !== undefined && { [Attr.serviceInstanceId]: options.instanceId }),
    }),
    sampler: new sdkTrace.ParentBasedSampler({ root: new sdkTrace.TraceIdRatioBasedSampler(sampleRatio) }),
    spanLimits: { linkCountLimit: MAX_LINKS, attributeValueLengthLimit: MAX_ATTRIBUTE_LENGTH },
    spanProcessors: [
      new sdkTrace.BatchSpanProcessor({
        exporter,
        maxQueueSize: MAX_QUEUED_SPANS,
        maxExportBatchSize: MAX_BATCH_SPANS,
        scheduledDelayMillis: options.exportDelayMs ?? DEFAULT_EXPORT_DELAY_MS,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  if (!scope.isOwn) trace.setGlobalTracerProvider(provider);
  // One for the process: services of one process share them, and nothing of theirs tells one from another.
  if (!areGlobalsRegistered) {
    areGlobalsRegistered = true;
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  }
  scope.record(provider);

  let ended: Promise<boolean> | undefined;
  const end = async (deadlineMs: number): Promise<boolean> => {
    scope.record(undefined);
    try {
      await deadline("the last spans to be sent", deadlineMs, () => provider.shutdown());
      return true;
    } catch (error) {
      const why = error instanceof DeadlineError ? "the receiver is slow or away" : "the export failed";
      options.logger?.warn(`the last spans are lost: ${why}`, { error });
      return false;
    } finally {
      recording.delete(own);
      if (recording.size === 0) unregister();
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

/** Lets a later startTelemetry register again: a test, or a process that starts its services anew. */
function unregister(): void {
  trace.disable();
  context.disable();
  propagation.disable();
  diag.disable();
  areGlobalsRegistered = false;
}

function tracesUrl(endpoint: string): string {
  let url: URL;
  try {
    url = new URL(endpoint);
  } catch (cause) {
    throw badEndpoint(endpoint, cause);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw badEndpoint(endpoint);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url.href;
}

function badEndpoint(endpoint: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `Cannot send spans as the OTLP endpoint must be an http(s) address: current value is "${endpoint}"`,
    { path: "otlpEndpoint", allowed: "an http(s) address such as http://127.0.0.1:4318" },
    { cause },
  );
}

function checkedRatio(ratio: number): number {
  if (Number.isFinite(ratio) && ratio >= 0 && ratio <= 1) return ratio;
  throw new InvalidInputError(
    `Cannot sample traces as the ratio must lie in [0, 1]: current value is ${ratio}`,
    {
      path: "sampleRatio",
      allowed: "a number from 0 to 1",
    },
  );
}
