/** A receiver of OTLP metrics that keeps points as Prometheus does: one for each series and time. */

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { fromBinary } from "@bufbuild/protobuf";
import { ExportMetricsServiceRequestSchema } from "@hone/otlp-proto";
import type { Curves } from "./sink.suite.ts";

export interface MetricsReceiver extends AsyncDisposable {
  readonly url: string;
  readonly headers: IncomingHttpHeaders[];
  /** Values of a run by the metric's name and the time in Unix milliseconds, in the order of the times. */
  values(runId: string): Readonly<Record<string, ReadonlyMap<number, number>>>;
  /** What it answers from now on. */
  answer(status: number): void;
}

const NANOS_PER_MS = 1_000_000n;

export async function startMetricsReceiver(): Promise<MetricsReceiver> {
  const points = new Map<string, Map<number, number>>();
  const headers: IncomingHttpHeaders[] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    headers.push(request.headers);
    const isMetrics = request.url === "/v1/metrics" && request.method === "POST";
    if (isMetrics && status === 200) keep(points, Buffer.concat(chunks));
    response.writeHead(isMetrics ? status : 404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    headers,
    values: (runId) =>
      Object.fromEntries(
        [...points].flatMap(([key, values]) => {
          const [run = "", name = ""] = key.split(" ");
          const inOrder = [...values].toSorted(([a], [b]) => a - b);
          return run === runId ? [[name, new Map(inOrder)]] : [];
        }),
      ),
    answer: (next) => {
      status = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The OTLP name of a figure. */
export function otlpName(name: string): string {
  return `hone.run.${name.replaceAll("/", ".")}`;
}

const STEPS = { train: otlpName("step"), val: otlpName("val/greedy/step") };

/** Points have times, not steps: the gauge of the step says which step each time is. */
export function otlpCurves(receiver: MetricsReceiver, runId: string): Curves {
  const { [STEPS.train]: train, [STEPS.val]: val, ...others } = receiver.values(runId);
  return Object.fromEntries(
    Object.entries(others).map(([name, values]) => {
      const steps = name.startsWith(otlpName("val/")) ? val : train;
      return [name, [...values].map(([at, value]) => [steps?.get(at) ?? Number.NaN, value] as const)];
    }),
  );
}

function keep(points: Map<string, Map<number, number>>, body: Uint8Array): void {
  for (const { scopeMetrics } of fromBinary(ExportMetricsServiceRequestSchema, body).resourceMetrics) {
    for (const { name, data } of scopeMetrics.flatMap(({ metrics }) => metrics)) {
      if (data.case !== "gauge") throw new TypeError(`${name} is not a gauge`);
      for (const { attributes, timeUnixNano, value } of data.value.dataPoints) {
        const run = attributes.find(({ key }) => key === "hone.run.id")?.value?.value.value ?? "";
        const key = `${run} ${name}`;
        const series = points.get(key) ?? new Map<number, number>();
        points.set(key, series.set(Number(timeUnixNano / NANOS_PER_MS), Number(value.value ?? Number.NaN)));
      }
    }
  }
}
