/** OpenTelemetry's variables, each in a process of its own that sends to receivers of its own. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type OtlpReceiver, startOtlpReceiver } from "@hone/testing";

const PROGRAM = fileURLToPath(new URL("recording-program.ts", import.meta.url));

interface Ended {
  readonly stdout: string;
  readonly log: string;
  readonly isEnabled: boolean;
  readonly headers: readonly string[];
}

async function record(
  variables: Readonly<Record<string, string>>,
  { tracerUrl = "", numSpans = 1 } = {},
): Promise<Ended> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(OTEL_|HONE_)/.test(name));
  const child = spawn(process.execPath, [PROGRAM, tracerUrl, String(numSpans)], {
    env: { ...Object.fromEntries(inherited), ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, log, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  assert.equal(code, 0, log);
  return { stdout, log, ...JSON.parse(log.trimEnd().split("\n").at(-1) ?? "") };
}

/** Both receivers: Hone's tracer and that of the user. */
async function receivers(): Promise<{ tracer: OtlpReceiver; own: OtlpReceiver } & AsyncDisposable> {
  const [tracer, own] = await Promise.all([startOtlpReceiver(), startOtlpReceiver()]);
  return {
    tracer,
    own,
    async [Symbol.asyncDispose]() {
      await Promise.all([tracer[Symbol.asyncDispose](), own[Symbol.asyncDispose]()]);
    },
  };
}

describe("where spans go", { concurrency: 2 }, () => {
  test("without a tracer and without a variable, nowhere", async () => {
    assert.equal((await record({})).isEnabled, false);
  });

  test("OTEL_EXPORTER_OTLP_ENDPOINT gets them where there is no tracer", async () => {
    await using own = await startOtlpReceiver();
    await record({ OTEL_EXPORTER_OTLP_ENDPOINT: own.url });
    assert.deepEqual(own.paths, ["/v1/traces"]);
    assert.equal(own.spans[0]?.name, "span 0");
  });

  test("the user's endpoint receives them in addition to the tracer; neither receives the other's secrets", async () => {
    await using both = await receivers();
    const { tracer, own } = both;
    const ended = await record(
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: own.url,
        OTEL_EXPORTER_OTLP_HEADERS: "x-vendor-key=secret-of-the-vendor",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      },
      { tracerUrl: tracer.url },
    );
    for (const { spans } of [tracer, own])
      assert.deepEqual(
        spans.map(({ name }) => name),
        ["span 0"],
      );
    assert.equal(own.headers[0]?.["x-vendor-key"], "secret-of-the-vendor");
    assert.equal(own.headers[0]?.["content-encoding"], "gzip");
    assert.equal(own.headers[0]?.authorization, undefined);
    assert.equal(tracer.headers[0]?.authorization, "Bearer token-of-the-tracer");
    assert.equal(tracer.headers[0]?.["x-vendor-key"], undefined);
    assert.equal(tracer.headers[0]?.["content-encoding"], undefined);
    assert.doesNotMatch(ended.log, /secret-of-the-vendor|token-of-the-tracer/);
  });

  test("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT goes before the other one, and is taken as it stands", async () => {
    await using both = await receivers();
    const { own, tracer: other } = both;
    await record({
      OTEL_EXPORTER_OTLP_ENDPOINT: other.url,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${own.url}/spans`,
    });
    assert.deepEqual(own.paths, ["/spans"]);
    assert.deepEqual(other.paths, []);
  });

  test("an endpoint that is the tracer gets each span once", async () => {
    await using tracer = await startOtlpReceiver();
    await record({ OTEL_EXPORTER_OTLP_ENDPOINT: `${tracer.url}/` }, { tracerUrl: tracer.url });
    assert.equal(tracer.spans.length, 1);
  });

  test("OTEL_TRACES_EXPORTER=none leaves the tracer its spans, and nobody else gets any", async () => {
    await using both = await receivers();
    const { tracer, own } = both;
    await record(
      { OTEL_TRACES_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: own.url },
      { tracerUrl: tracer.url },
    );
    assert.equal(tracer.spans.length, 1);
    assert.deepEqual(own.paths, []);
  });

  test("OTEL_TRACES_EXPORTER=console,otlp writes them to standard output and sends them", async () => {
    await using both = await receivers();
    const { tracer, own } = both;
    const { stdout } = await record(
      { OTEL_TRACES_EXPORTER: "console,otlp", OTEL_EXPORTER_OTLP_ENDPOINT: own.url },
      { tracerUrl: tracer.url },
    );
    assert.match(stdout, /name: 'span 0'/);
    assert.equal(tracer.spans.length, 1);
    assert.equal(own.spans.length, 1);
  });

  test("OTEL_TRACES_EXPORTER=zipkin sends them in Zipkin's JSON", async () => {
    const bodies: string[] = [];
    const server = createHttpServer(async (request, response) => {
      bodies.push(await text(request));
      response.writeHead(202).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await record({
      OTEL_TRACES_EXPORTER: "zipkin",
      OTEL_EXPORTER_ZIPKIN_ENDPOINT: `http://127.0.0.1:${port}/api/v2/spans`,
    });
    server.close();
    assert.equal(JSON.parse(bodies[0] ?? "[]")[0]?.name, "span 0");
  });

  test("an exporter that is unknown costs a line of the log, and the tracer gets its spans", async () => {
    await using tracer = await startOtlpReceiver();
    const { log } = await record({ OTEL_TRACES_EXPORTER: "jaeger" }, { tracerUrl: tracer.url });
    assert.match(log, /names \\"jaeger\\", which is unknown/);
    assert.equal(tracer.spans.length, 1);
  });

  test("OTEL_SDK_DISABLED=true ends all recording, and says so in the log", async () => {
    await using both = await receivers();
    const { tracer, own } = both;
    const { isEnabled, log } = await record(
      { OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: own.url },
      { tracerUrl: tracer.url },
    );
    assert.equal(isEnabled, false);
    assert.match(log, /OTEL_SDK_DISABLED is true/);
    assert.deepEqual([...tracer.paths, ...own.paths], []);
  });

  test("a receiver of the user's that refuses costs a line of the log, and the tracer gets its spans", async () => {
    await using tracer = await startOtlpReceiver();
    const { log } = await record(
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_EXPORTER_OTLP_TIMEOUT: "300" },
      { tracerUrl: tracer.url },
    );
    assert.equal(tracer.spans.length, 1);
    assert.match(log, /spans are lost/);
  });
});

describe("OTEL_EXPORTER_OTLP_PROTOCOL", { concurrency: 2 }, () => {
  test("http/json sends JSON", async () => {
    await using own = await startOtlpReceiver();
    await record({ OTEL_EXPORTER_OTLP_ENDPOINT: own.url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" });
    assert.equal(own.headers[0]?.["content-type"], "application/json");
  });

  test("grpc calls the trace service of a gRPC server", async () => {
    const paths: string[] = [];
    const server = createServer().listen(0, "127.0.0.1");
    server.on("stream", (stream, headers) => {
      paths.push(String(headers[":path"]));
      stream.resume();
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.alloc(5)); // an empty answer
    });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await record({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    });
    server.close();
    assert.deepEqual(paths, ["/opentelemetry.proto.collector.trace.v1.TraceService/Export"]);
  });
});

describe("what spans hold", { concurrency: 2 }, () => {
  test("OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES describe the service", async () => {
    await using tracer = await startOtlpReceiver();
    await record(
      {
        OTEL_SERVICE_NAME: "my-judge",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=lab,service.instance.id=third",
      },
      { tracerUrl: tracer.url },
    );
    const { resource } = tracer.spans[0]!;
    assert.equal(resource["service.name"], "my-judge");
    assert.equal(resource["service.instance.id"], "third");
    assert.equal(resource["deployment.environment.name"], "lab");
    assert.equal(resource["service.namespace"], "hone");
    assert.equal(resource["telemetry.sdk.language"], "nodejs");
    assert.equal(resource["process.pid"], undefined);
  });

  test("OTEL_NODE_RESOURCE_DETECTORS chooses additional attributes of the resource", async () => {
    await using tracer = await startOtlpReceiver();
    await record({ OTEL_NODE_RESOURCE_DETECTORS: "env,host,process" }, { tracerUrl: tracer.url });
    const { resource } = tracer.spans[0]!;
    assert.equal(resource["service.name"], "judge");
    assert.equal(resource["service.instance.id"], "judge-0");
    assert.equal(typeof resource["process.pid"], "number");
    assert.equal(typeof resource["host.name"], "string");
  });

  test("a span keeps its 200 links and a text of 1,000 characters, unless the environment's limits are lower", async () => {
    await using both = await receivers();
    await record({}, { tracerUrl: both.tracer.url });
    await record(
      { OTEL_SPAN_LINK_COUNT_LIMIT: "3", OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: "5" },
      { tracerUrl: both.own.url },
    );
    const [usual, limited] = [both.tracer.spans[0]!, both.own.spans[0]!];
    assert.equal(usual.numLinks, 200);
    assert.equal(String(usual.attributes.text).length, 1_000);
    assert.equal(limited.numLinks, 3);
    assert.equal(limited.attributes.text, "xxxxx");
  });

  test("OTEL_PROPAGATORS does not change the headers in which a trace crosses the bus", async () => {
    await using tracer = await startOtlpReceiver();
    const { headers } = await record({ OTEL_PROPAGATORS: "b3" }, { tracerUrl: tracer.url });
    assert.deepEqual(headers, ["traceparent"]);
  });
});

describe("which spans are recorded, and how they are sent", { concurrency: 2 }, () => {
  test("OTEL_TRACES_SAMPLER and its argument say which traces are recorded", async () => {
    await using both = await receivers();
    await record({ OTEL_TRACES_SAMPLER: "always_off" }, { tracerUrl: both.own.url, numSpans: 20 });
    await record(
      { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.5" },
      { tracerUrl: both.tracer.url, numSpans: 400 },
    );
    assert.equal(both.own.spans.length, 0);
    // Binomial(400, 0.5): 150 to 250 is five standard deviations.
    const { length } = both.tracer.spans;
    assert.ok(length > 150 && length < 250, `${length} of 400`);
  });

  test("OTEL_BSP_MAX_EXPORT_BATCH_SIZE is the number of spans in a request", async () => {
    await using tracer = await startOtlpReceiver();
    await record({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" }, { tracerUrl: tracer.url, numSpans: 100 });
    assert.equal(tracer.spans.length, 100);
    assert.equal(tracer.numRequests(), 10);
  });

  test("OTEL_BSP_MAX_QUEUE_SIZE bounds what waits: the rest is dropped", async () => {
    await using tracer = await startOtlpReceiver();
    await record(
      { OTEL_BSP_MAX_QUEUE_SIZE: "20", OTEL_BSP_SCHEDULE_DELAY: "60000" },
      { tracerUrl: tracer.url, numSpans: 2_000 },
    );
    assert.ok(tracer.spans.length < 2_000, `${tracer.spans.length} spans`);
  });

  test("OTEL_LOG_LEVEL=debug adds OpenTelemetry's lines to the service's log, in its form", async () => {
    await using tracer = await startOtlpReceiver();
    const { log, stdout } = await record({ OTEL_LOG_LEVEL: "debug" }, { tracerUrl: tracer.url });
    const lines = log.trimEnd().split("\n");
    assert.ok(lines.length > 2, log);
    for (const line of lines.slice(0, -1)) assert.match(JSON.parse(line).message, /^telemetry: /);
    assert.doesNotMatch(stdout, /Span|export/); // NodeSDK itself tells the console of the change of loggers
  });

  test("settings that have no effect cost a line each", async () => {
    await using tracer = await startOtlpReceiver();
    const { log } = await record(
      { OTEL_METRICS_EXPORTER: "otlp", OTEL_LOGS_EXPORTER: "otlp", OTEL_CONFIG_FILE: "otel.yaml" },
      { tracerUrl: tracer.url },
    );
    for (const name of ["OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_CONFIG_FILE"]) {
      assert.match(log, new RegExp(`${name} has no effect`));
    }
    assert.equal(tracer.spans.length, 1);
  });
});
