/**
 * OpenTelemetry's API, in the form that the SDK loads (otel-packages.ts): every process has it once. Code of users that
 * imports `@opentelemetry/api` shares its registrations.
 */

import { otelPackage } from "./otel-packages.ts";

export const {
  context,
  diag,
  DiagLogLevel,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} = otelPackage("@opentelemetry/api");
export type SpanKind = import("@opentelemetry/api").SpanKind;
