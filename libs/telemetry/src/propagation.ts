/**
 * Trace context across the bus: W3C `traceparent` in message headers.
 *
 * It works in a process that records nothing too: what came in by `extractContext` goes out by `injectContext`, so such a
 * service in the middle does not end a trace.
 */

import type { Context, Link, Span, SpanContext } from "@opentelemetry/api";
import type { W3CTraceContextPropagator } from "@opentelemetry/core";
import { context, isSpanContextValid, trace } from "./otel-api.ts";
import { otelPackage } from "./otel-packages.ts";

/** Headers that carry the context, such as those of NATS messages. Keys are in lower case. */
export interface HeaderCarrier {
  /** @returns undefined when the header is absent. */
  get(key: string): string | undefined;
  set(key: string, value: string): void;
  keys(): string[];
}

/** Made when the first trace crosses: most command lines never see one. */
let made: W3CTraceContextPropagator | undefined;

function propagator(): W3CTraceContextPropagator {
  made ??= new (otelPackage("@opentelemetry/core").W3CTraceContextPropagator)();
  return made;
}

/** Writes `traceparent` (and `tracestate`) of `from` into the carrier; writes nothing where there is no trace. */
export function injectContext(carrier: HeaderCarrier, from: Context = context.active()): void {
  if (!isInTrace(from)) return;
  propagator().inject(from, carrier, { set: (target, key, value) => target.set(key, value) });
}

/**
 * `traceparent` (and `tracestate`) of a context, with which a server or a program outside that traces itself joins the trace:
 * as headers of HTTP, as the metadata of an MCP request. Empty where there is no trace.
 */
export function traceHeaders(from: Context = context.active()): Record<string, string> {
  const found: Record<string, string> = {};
  injectContext(
    {
      get: (key) => found[key],
      set: (key, value) => {
        found[key] = value;
      },
      keys: () => Object.keys(found),
    },
    from,
  );
  return found;
}

/**
 * The same for programs that are started here: environment variables, as OpenTelemetry's "Environment Variables as Context
 * Propagation Carriers" names them (`TRACEPARENT`, `TRACESTATE`).
 */
export function traceVariables(from: Context = context.active()): Record<string, string> {
  const named = Object.entries(traceHeaders(from)).map(([name, value]) => [name.toUpperCase(), value]);
  return Object.fromEntries(named);
}

/** Reads the context that a message carries. @returns `base` when it carries none or an unreadable one. */
export function extractContext(carrier: HeaderCarrier, base: Context = context.active()): Context {
  if (carrier.get("traceparent") === undefined) return base;
  return propagator().extract(base, carrier, {
    get: (source, key) => source.get(key),
    keys: (source) => source.keys(),
  });
}

/** `traceparent` of a span, to be kept in a row or a message; undefined when the span belongs to no trace. */
export function traceparentOf(span: Span): string | undefined {
  let traceparent: string | undefined;
  const below = trace.setSpan(context.active(), span);
  if (!isInTrace(below)) return undefined;
  propagator().inject(below, undefined, {
    set: (_carrier, key, value) => {
      if (key === "traceparent") traceparent = value;
    },
  });
  return traceparent;
}

/** The context below which spans of a kept `traceparent` go on. @returns the active context for an unreadable one. */
export function contextOfTraceparent(traceparent: string | undefined): Context {
  const spanContext = spanContextOf(traceparent);
  return spanContext === undefined ? context.active() : trace.setSpanContext(context.active(), spanContext);
}

/** `traceparent` of the active span, where it is recorded: for programs that are called without headers. */
export function recordedTraceparent(): string | undefined {
  const span = trace.getActiveSpan();
  return span?.isRecording() ? traceparentOf(span) : undefined;
}

/** A link to the span of a context; undefined where it has none. @param to the active context by default. */
export function linkTo(to: Context = context.active()): Link | undefined {
  const spanContext = trace.getSpanContext(to);
  return spanContext !== undefined && isSpanContextValid(spanContext) ? { context: spanContext } : undefined;
}

/** A link to the span of a kept `traceparent`; undefined for an unreadable one. */
export function linkToTraceparent(traceparent: string | undefined): Link | undefined {
  const spanContext = spanContextOf(traceparent);
  return spanContext === undefined ? undefined : { context: spanContext };
}

function isInTrace(from: Context): boolean {
  const spanContext = trace.getSpanContext(from);
  return spanContext !== undefined && isSpanContextValid(spanContext);
}

function spanContextOf(traceparent: string | undefined): SpanContext | undefined {
  const parsed =
    traceparent === undefined ? null : otelPackage("@opentelemetry/core").parseTraceParent(traceparent);
  return parsed === null ? undefined : { ...parsed, isRemote: true };
}
