/**
 * Making spans.
 *
 * T1: a trace is recorded whole or not at all: the sampler decides at its root, and all spans below follow.
 * T2: below a root that is not recorded a span costs next to nothing: it gets no id, no attributes and no time.
 * T3: every span ends: `withSpan` ends it in `finally`, and whoever calls `startSpan` ends what it returns.
 * T4: secrets are removed from the texts of errors before they reach a span.
 * T5: a span carries the name of the service whose work it is. In a process of several services, everything that a service
 *     starts runs in that service's scope.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { HoneError } from "@hone/core";
import type { Attributes, Context, Link, Span, TimeInput, Tracer, TracerProvider } from "@opentelemetry/api";
import {
  context,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "./otel-api.ts";
import { redactText } from "./redact.ts";

/** Options for {@link startSpan} and {@link withSpan}. */
export interface SpanOptions {
  readonly attributes?: Attributes | undefined;
  /** Spans that this one has to do with but that are not its parent. */
  readonly links?: Link[] | undefined;
  /** @default SpanKind.INTERNAL */
  readonly kind?: SpanKind | undefined;
  /** The context below which it stands; `"root"` starts a new trace. @default the active context */
  readonly parent?: Context | "root" | undefined;
  /** When it started, if that is in the past: Unix milliseconds or a Date. @default now */
  readonly startTime?: TimeInput | undefined;
}

const INSTRUMENTATION_SCOPE = "hone";
const DETACHED_SPAN = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** Makes the spans of one service; undefined = it records none. */
interface Scope {
  tracer: Tracer | undefined;
}

/** The scope of a process that is one service. */
const processScope: Scope = { tracer: undefined };
/** The scopes of several services in one process (T5). */
const ownScopes = new AsyncLocalStorage<Scope>();

/**
 * Runs one of several services of this process: telemetry that is started in it is its own, and so are the spans of all that
 * it starts, for as long as that lives.
 */
export function inOwnScope<T>(work: () => T): T {
  return ownScopes.run({ tracer: undefined }, work);
}

/** Where the code that runs now makes its spans. Only startTelemetry calls this. */
export function currentScope(): {
  readonly isOwn: boolean;
  record(provider: TracerProvider | undefined): void;
} {
  const own = ownScopes.getStore();
  const scope = own ?? processScope;
  return {
    isOwn: own !== undefined,
    record: (provider) => {
      scope.tracer = provider?.getTracer(INSTRUMENTATION_SCOPE);
    },
  };
}

function activeTracer(): Tracer | undefined {
  return processScope.tracer ?? ownScopes.getStore()?.tracer;
}

/**
 * Starts a span; the caller ends it (T3). Nothing below it is its child by itself: pass `contextOf(span)` on as `parent`,
 * or use {@link withSpan}.
 */
export function startSpan(name: string, options: SpanOptions = {}): Span {
  const parent = options.parent === "root" ? ROOT_CONTEXT : (options.parent ?? context.active());
  const parentSpan = trace.getSpan(parent);
  // T2: the parent stands in for spans that are not recorded: ending it does nothing, and its ids are passed on.
  const tracer = activeTracer();
  if (tracer === undefined) return nonRecording(parentSpan);
  if (parentSpan !== undefined && (parentSpan.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) {
    return nonRecording(parentSpan);
  }
  return tracer.startSpan(
    name,
    {
      kind: options.kind ?? SpanKind.INTERNAL,
      ...(options.attributes !== undefined && { attributes: options.attributes }),
      ...(options.links !== undefined && { links: options.links }),
      ...(options.startTime !== undefined && { startTime: options.startTime }),
    },
    parent,
  );
}

/**
 * Runs `work` inside a span: spans made there are its children, an exception is recorded and passed on, the span
 * ends when the promise settles.
 *
 * @example
 * const reply = await withSpan(SpanName.chat(model), { kind: SpanKind.CLIENT, attributes }, (span) => call(span));
 */
export async function withSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T> | T,
): Promise<T> {
  const span = startSpan(name, options);
  const active = context.active();
  if (!span.isRecording() && span === trace.getSpan(active)) return work(span);
  const below = trace.setSpan(options.parent === "root" ? ROOT_CONTEXT : (options.parent ?? active), span);
  try {
    return await context.with(below, () => work(span));
  } catch (error) {
    recordError(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** The context whose active span is `span`: its children take it as `parent`, and `injectContext` sends it. */
export function contextOf(span: Span, base: Context = context.active()): Context {
  return trace.setSpan(base, span);
}

/** Runs `work`, and all that it awaits, with `below` as the active context: for a span that ends elsewhere. */
export function runBelow<T>(below: Context, work: () => T): T {
  return context.with(below, work);
}

/** Adds attributes to the span of a context, where this process records it. */
export function describeSpan(of: Context, attributes: Attributes): void {
  const span = trace.getSpan(of);
  if (span?.isRecording()) span.setAttributes(attributes);
}

/** Marks a span as failed, with the error's type, message and stack (T4). */
export function recordError(span: Span, error: unknown): void {
  if (!span.isRecording()) return;
  const { type, message, stack } = errorFields(error);
  span.setAttribute("error.type", type);
  span.recordException({ name: type, message, ...(stack !== undefined && { stack }) });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

function nonRecording(parent: Span | undefined): Span {
  if (parent === undefined) return DETACHED_SPAN;
  return parent.isRecording() ? trace.wrapSpanContext(parent.spanContext()) : parent;
}

function errorFields(error: unknown): { type: string; message: string; stack?: string } {
  if (!(error instanceof Error)) return { type: "unknown", message: redactText(String(error)) };
  return {
    type: error instanceof HoneError ? error.code : error.name,
    message: redactText(error.message),
    ...(error.stack !== undefined && { stack: redactText(error.stack) }),
  };
}
