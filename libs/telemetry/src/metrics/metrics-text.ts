/**
 * The text of /metrics, in Prometheus' text format 0.0.4.
 *
 * The process's own figures (memory, event loop, garbage collection) come from prom-client, which is loaded at the first
 * request: that takes 45 ms of CPU, which a process without scrapes never spends.
 */

import { deadline } from "@hone/core";
import type { InstrumentInfo } from "./instruments.ts";
import { type HistogramSeries, type Observation, registeredMetrics } from "./metrics.ts";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** How long one observer may take: one that asks a server that is away is left out. */
const OBSERVE_DEADLINE_MS = 1_000;

/** The figures of this process now. */
export async function metricsText(): Promise<string> {
  const { counters, histograms, observers } = registeredMetrics();
  const blocks: string[] = [];
  for (const { info, entries } of counters) {
    blocks.push(
      block(
        info,
        [...entries].map(({ labels, series }) => line(info.name, labels, series.value)),
      ),
    );
  }
  for (const { info, entries } of histograms) {
    blocks.push(
      block(
        info,
        [...entries].flatMap(({ labels, series }) => histogramLines(info.name, labels, series)),
      ),
    );
  }
  const observed = await Promise.all(
    observers.map(async ({ info, observe }) => ({ info, found: await tryObserve(observe) })),
  );
  for (const reports of Map.groupBy(observed, ({ info }) => info.name).values()) {
    const { info } = reports[0]!;
    blocks.push(
      block(
        info,
        summedLines(
          info.name,
          reports.flatMap(({ found }) => found),
        ),
      ),
    );
  }
  return [...blocks.filter((text) => text !== ""), await processText()].join("\n");
}

/** Empty where there is no series. */
function block({ name, help, kind }: InstrumentInfo, lines: readonly string[]): string {
  if (lines.length === 0) return "";
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join("\n")}\n`;
}

type Labelled = Readonly<Record<string, string>>;

async function tryObserve(
  observe: () => Iterable<Observation<InstrumentInfo>> | Promise<Iterable<Observation<InstrumentInfo>>>,
): Promise<readonly Observation<InstrumentInfo>[]> {
  try {
    return [...(await deadline("a figure", OBSERVE_DEADLINE_MS, async () => observe()))];
  } catch {
    return []; // a figure that cannot be had is absent, as Prometheus has it; /readyz tells why
  }
}

/** Observers of the same series, such as two consumers of one process, are summed. */
function summedLines(name: string, found: readonly Observation<InstrumentInfo>[]): string[] {
  const sums = new Map<string, number>();
  for (const { labels, value } of found) {
    const text = labelText(labels);
    sums.set(text, (sums.get(text) ?? 0) + value);
  }
  return [...sums].map(([text, value]) => `${name}${text} ${numberText(value)}`);
}

function histogramLines(name: string, labels: Labelled, { bounds, counts, sum }: HistogramSeries): string[] {
  const lines: string[] = [];
  let total = 0;
  for (const [index, count] of counts.entries()) {
    total += count;
    const le = index < bounds.length ? numberText(bounds[index]!) : "+Inf";
    lines.push(line(`${name}_bucket`, { ...labels, le }, total));
  }
  return [...lines, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, total)];
}

function line(name: string, labels: Labelled, value: number): string {
  return `${name}${labelText(labels)} ${numberText(value)}`;
}

function labelText(labels: Labelled): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

let processRegistry: Promise<{ metrics(): Promise<string> }> | undefined;

function processText(): Promise<string> {
  processRegistry ??= import("prom-client").then(({ collectDefaultMetrics, Registry }) => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    return registry;
  });
  return processRegistry.then((registry) => registry.metrics());
}
