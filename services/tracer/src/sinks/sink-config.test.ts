import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { readSinkConfig } from "./sink-config.ts";

describe("readSinkConfig()", () => {
  test("names no system by default", () => {
    assert.deepEqual(readSinkConfig({}), {
      tensorboardDir: undefined,
      mlflow: undefined,
      otlpMetrics: undefined,
    });
  });

  test("takes MLflow's credentials out of its address, and prefers a token", () => {
    const address = "https://user:p%40ss@mlflow.example.org/base/";
    const { mlflow } = readSinkConfig({ HONE_MLFLOW_URL: address });
    assert.equal(mlflow?.url, "https://mlflow.example.org/base");
    assert.equal(mlflow?.authorization, `Basic ${Buffer.from("user:p@ss").toString("base64")}`);
    const both = readSinkConfig({ HONE_MLFLOW_URL: address, HONE_MLFLOW_TOKEN: "t" });
    assert.equal(both.mlflow?.authorization, "Bearer t");
  });

  test("reads headers as OpenTelemetry's variables have them, also from a file", async () => {
    await using folder = await temporaryFolder("headers");
    const file = path.join(folder.path, "headers");
    await writeFile(file, "x-key=a%20b,tenant=1\n");
    const url = "http://127.0.0.1:4318";
    const read = readSinkConfig({ HONE_OTLP_METRICS_URL: url, HONE_OTLP_METRICS_HEADERS_FILE: file });
    assert.deepEqual(read.otlpMetrics, { url, headers: { "x-key": "a b", tenant: "1" } });
  });

  test("refuses headers without a name, and does not tell their value", () => {
    const environment = { HONE_OTLP_METRICS_URL: "http://127.0.0.1:1", HONE_OTLP_METRICS_HEADERS: "s3cr3t" };
    assert.throws(
      () => readSinkConfig(environment),
      (error) =>
        error instanceof Error && /name=value/.test(error.message) && !error.message.includes("s3cr3t"),
    );
  });

  test("refuses an address that is none, and an experiment with a quote", () => {
    assert.throws(() => readSinkConfig({ HONE_MLFLOW_URL: "mlflow:5000" }), /HONE_MLFLOW_URL/);
    const environment = { HONE_MLFLOW_URL: "http://m", HONE_MLFLOW_EXPERIMENT: "a'b" };
    assert.throws(() => readSinkConfig(environment), /HONE_MLFLOW_EXPERIMENT/);
  });
});
