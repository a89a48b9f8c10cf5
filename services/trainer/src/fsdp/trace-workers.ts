/** Makes the spans of workers from their answers, since workers have no exporter of their own. */

import type { WorkerSpan } from "@hone/proto-gen/training";
import { Attr, contextOf, contextOfTraceparent, SpanName, startSpan } from "@hone/telemetry";

const NANOSECONDS = 1_000_000_000n;

/**
 * Makes the spans of a call: one for each rank, and its phases below that.
 * @param spans of each rank in the order of their ends: the last one is around the others.
 * @param traceparent what the call carried.
 */
export function traceWorkers(spans: readonly WorkerSpan[], traceparent: string): void {
  const caller = contextOfTraceparent(traceparent);
  for (const [rank, ofRank] of Map.groupBy(spans, (span) => span.rank)) {
    const whole = ofRank.at(-1)!;
    const open = ({ name, beginUnixNs }: WorkerSpan, parent = caller) =>
      startSpan(SpanName.worker(name), {
        parent,
        startTime: timeOf(beginUnixNs),
        attributes: { [Attr.workerRank]: rank },
      });
    const span = open(whole);
    const below = contextOf(span, caller);
    for (const phase of ofRank) {
      if (phase !== whole) open(phase, below).end(timeOf(phase.endUnixNs));
    }
    span.end(timeOf(whole.endUnixNs));
  }
}

/** Seconds and nanoseconds, as OpenTelemetry takes them. */
function timeOf(unixNs: bigint): [number, number] {
  return [Number(unixNs / NANOSECONDS), Number(unixNs % NANOSECONDS)];
}
