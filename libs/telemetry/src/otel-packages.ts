/**
 * OpenTelemetry's packages, loaded where they are needed first: most of them when a process records spans.
 *
 * They are loaded by `require`: each of them is there as CommonJS too, and loading the 500 files of
 * `@opentelemetry/sdk-node` that way takes two thirds of the processor time that `import` takes. Both forms share the
 * API's registrations, which live on `globalThis`.
 */

import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

type Packages = {
  "@opentelemetry/api": typeof import("@opentelemetry/api");
  "@opentelemetry/core": typeof import("@opentelemetry/core");
  "@opentelemetry/context-async-hooks": typeof import("@opentelemetry/context-async-hooks");
  "@opentelemetry/exporter-trace-otlp-grpc": typeof import("@opentelemetry/exporter-trace-otlp-grpc");
  "@opentelemetry/exporter-trace-otlp-http": typeof import("@opentelemetry/exporter-trace-otlp-http");
  "@opentelemetry/exporter-trace-otlp-proto": typeof import("@opentelemetry/exporter-trace-otlp-proto");
  "@opentelemetry/exporter-zipkin": typeof import("@opentelemetry/exporter-zipkin");
  "@opentelemetry/otlp-exporter-base": typeof import("@opentelemetry/otlp-exporter-base");
  "@opentelemetry/otlp-exporter-base/node-http": typeof import("@opentelemetry/otlp-exporter-base/node-http");
  "@opentelemetry/otlp-transformer": typeof import("@opentelemetry/otlp-transformer");
  "@opentelemetry/resources": typeof import("@opentelemetry/resources");
  "@opentelemetry/sdk-node": typeof import("@opentelemetry/sdk-node");
  "@opentelemetry/sdk-trace": typeof import("@opentelemetry/sdk-trace");
};

/** Loads one of the packages; from the second call on it costs nothing. */
export function otelPackage<Name extends keyof Packages>(name: Name): Packages[Name] {
  return load(name);
}
