/** Metrics of a shared consumer. The depth of its queue is requested from the server with each scrape. */

import { counterOf, Instrument, observeMetric } from "@hone/telemetry";
import type { Bus } from "../bus.ts";
import { consumerBacklog } from "../streams/backlog.ts";
import type { DurableName } from "../streams/durables.ts";
import type { StreamName } from "../streams/streams.ts";

export interface ConsumerMetrics extends Disposable {
  consumed(deliveries: number): void;
  failed(): void;
  dead(): void;
}

/** @param inWork returns the number of messages that this process works on. */
export function consumerMetrics(
  bus: Bus,
  stream: StreamName,
  consumer: string,
  inWork: () => number,
): ConsumerMetrics {
  const labels = { consumer };
  const consumed = counterOf(Instrument.consumed).of(labels);
  const redelivered = counterOf(Instrument.redelivered).of(labels);
  const failed = counterOf(Instrument.failed).of(labels);
  const dead = counterOf(Instrument.dead).of(labels);
  let asking: ReturnType<typeof consumerBacklog> | undefined;
  /** Both depths of one scrape come from one request. */
  const backlog = () => {
    asking ??= consumerBacklog(bus, stream, consumer as DurableName).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  const observers = [
    observeMetric(Instrument.inWork, () => [{ labels, value: inWork() }]),
    observeMetric(Instrument.pending, async () => [{ labels, value: (await backlog()).pending }]),
    observeMetric(Instrument.ackPending, async () => [{ labels, value: (await backlog()).inWork }]),
  ];
  return {
    consumed(deliveries) {
      consumed.add();
      if (deliveries > 1) redelivered.add();
    },
    failed: () => failed.add(),
    dead: () => dead.add(),
    [Symbol.dispose]() {
      for (const observer of observers) observer[Symbol.dispose]();
    },
  };
}
