/**
 * OpenTelemetry's packages, loaded where they are needed first: most of them when a process records spans.
 *
 * They are loaded by `require`: each of them is there as CommonJS too, and loading them that way takes two thirds of the
 * processor time that `import` takes. Both forms share the API's registrations, which live on `globalThis`.
 *
 * `@opentelemetry/sdk-node` requires everything that it may be asked to make: exporters of logs and metrics, gRPC, a parser
 * of YAML, in all 500 files. Six services load it at every start, so what none of them uses by default is loaded when it is
 * used, which leaves 220 files and half of the time.
 */

import Module, { createRequire } from "node:module";

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

/** What `sdk-node` requires and none of the services uses by default. */
const SELDOM_USED = [
  "@opentelemetry/configuration",
  "@opentelemetry/exporter-logs-otlp-grpc",
  "@opentelemetry/exporter-logs-otlp-http",
  "@opentelemetry/exporter-logs-otlp-proto",
  "@opentelemetry/exporter-metrics-otlp-grpc",
  "@opentelemetry/exporter-metrics-otlp-http",
  "@opentelemetry/exporter-metrics-otlp-proto",
  "@opentelemetry/exporter-prometheus",
  "@opentelemetry/exporter-trace-otlp-grpc",
  "@opentelemetry/exporter-zipkin",
  "@opentelemetry/instrumentation",
  "@opentelemetry/otlp-grpc-exporter-base",
  "@opentelemetry/propagator-b3",
  "@opentelemetry/sdk-logs",
  "@opentelemetry/sdk-metrics",
];

/** Loads one of the packages; from the second call on it costs nothing. */
export function otelPackage<Name extends keyof Packages>(name: Name): Packages[Name] {
  if (name === "@opentelemetry/sdk-node") postponeSeldomUsed();
  return load(name);
}

/** Lets `sdk-node` require the seldom used packages without loading them. */
function postponeSeldomUsed(): void {
  const requireOfSdk = createRequire(load.resolve("@opentelemetry/sdk-node"));
  for (const name of SELDOM_USED) {
    const file = requireOfSdk.resolve(name);
    if (load.cache[file] === undefined) load.cache[file] = postponed(file, requireOfSdk);
  }
}

/** A module that is loaded when one of its exports is read. Whoever requires its file before gets this in its place. */
function postponed(file: string, requireOfSdk: NodeJS.Require): NodeJS.Module {
  let loaded: object | undefined;
  const module = new Module(file);
  module.filename = file;
  module.loaded = true;
  module.exports = new Proxy(
    {},
    {
      get: (_, key) => {
        if (loaded === undefined) {
          delete load.cache[file];
          loaded = requireOfSdk(file) as object;
        }
        return Reflect.get(loaded, key);
      },
    },
  );
  return module;
}
