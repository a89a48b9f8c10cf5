import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { otelPackage } from "./otel-packages.ts";

describe("OpenTelemetry's packages", () => {
  const loaded = () => Object.keys(createRequire(import.meta.url).cache);

  test("are loaded with the SDK only as far as a service uses them by default", () => {
    const { NodeSDK } = otelPackage("@opentelemetry/sdk-node");
    assert.equal(typeof NodeSDK, "function");
    const files = loaded();
    assert.ok(files.length < 300, `${files.length} files were loaded`);
    assert.deepEqual(
      files.filter((file) => /node_modules\/(yaml|@grpc\/grpc-js)\//.test(file)),
      [],
    );
  });

  test("are loaded when they are used, and are then the packages themselves", async () => {
    otelPackage("@opentelemetry/sdk-node");
    const { OTLPTraceExporter } = otelPackage("@opentelemetry/exporter-trace-otlp-grpc");
    await new OTLPTraceExporter({ url: "http://127.0.0.1:1" }).shutdown();
    assert.ok(loaded().some((file) => file.includes("/@grpc/grpc-js/")));
    const again = otelPackage("@opentelemetry/exporter-trace-otlp-grpc");
    assert.equal(again.OTLPTraceExporter, OTLPTraceExporter);
    assert.ok(Object.keys(again).includes("OTLPTraceExporter"));
  });
});
