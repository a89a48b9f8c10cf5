/**
 * Pushes the figures of runs as OTLP metrics, one gauge for each figure: `hone.run.critic.rewards.mean` and so on, with the run's id
 * as attribute, and `hone.run.step`.
 *
 * O1: a point has the time of its step, so one that is sent twice is the same point.
 * O2: an answer 400 must not be sent again (OTLP specification, "Failures"): the points are dropped and counted in the log, as
 *     when Prometheus gets points that are older than it accepts.
 */

import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type ExportMetricsServiceRequest, ExportMetricsServiceRequestSchema } from "@hone/otlp-proto";
import { Attr, type Logger } from "@hone/telemetry";
import type { EventSink } from "../../domain/event-sink.ts";
import { SinkRefusedError } from "../../errors.ts";
import { type MetricPoints, pointsOf } from "../metric-points.ts";
import { sinkRequest } from "../sink-request.ts";

export interface OtlpMetricsOptions {
  /** Base address of an OTLP/HTTP receiver; /v1/metrics is appended where it is missing. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

type GaugeInit = NonNullable<
  NonNullable<
    NonNullable<
      MessageInitShape<typeof ExportMetricsServiceRequestSchema>["resourceMetrics"]
    >[number]["scopeMetrics"]
  >[number]["metrics"]
>[number];

const PATH = "/v1/metrics";
const NANOS_PER_MS = 1_000_000n;
const REPORT_INTERVAL_MS = 30_000;

export function otlpMetricsSink({ url, headers, logger, signal }: OtlpMetricsOptions): EventSink {
  const base = url.replace(/\/+$/, "");
  const receiver = base.endsWith(PATH) ? base : `${base}${PATH}`;
  let dropped = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;

  const send = async (points: MetricPoints): Promise<void> => {
    try {
      await sinkRequest({
        sink: `the receiver of metrics at ${receiver}`,
        url: receiver,
        method: "POST",
        headers: { ...headers, "content-type": "application/x-protobuf" },
        body: Uint8Array.from(toBinary(ExportMetricsServiceRequestSchema, requestOf(points))),
        signal,
      });
    } catch (error) {
      if (!(error instanceof SinkRefusedError)) throw error;
      dropped += points.values.length; // O2
      if (performance.now() - reportedAt < REPORT_INTERVAL_MS) return;
      reportedAt = performance.now();
      logger.warn("metrics were dropped", { droppedSoFar: dropped, error });
    }
  };

  return {
    write: async (facts) => {
      for (const fact of facts) {
        const points = pointsOf(fact);
        if (points !== undefined && points.values.length > 0) await send(points);
      }
    },
  };
}

function requestOf({ runId, series, step, timeMs, values }: MetricPoints): ExportMetricsServiceRequest {
  const timeUnixNano = BigInt(timeMs) * NANOS_PER_MS;
  const attributes = [attribute(Attr.runId, runId)];
  const gauge = (name: string, value: number): GaugeInit => ({
    name: `hone.run.${name.replaceAll("/", ".")}`,
    data: {
      case: "gauge",
      value: { dataPoints: [{ timeUnixNano, attributes, value: { case: "asDouble", value } }] },
    },
  });
  const own = gauge(series === "train" ? "step" : `${series}/step`, step);
  return create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: [
      {
        resource: { attributes: [attribute("service.name", "hone")] },
        scopeMetrics: [
          { scope: { name: "hone" }, metrics: [own, ...values.map(([name, value]) => gauge(name, value))] },
        ],
      },
    ],
  });
}

function attribute(key: string, value: string) {
  return { key, value: { value: { case: "stringValue", value } } } as const;
}
