/**
 * The metrics of this process.
 *
 * M1: counting costs one addition: code that counts often looks a series up once and keeps it, and nothing is formatted
 *     before somebody asks for the text.
 * M2: what can be read at any time, such as a queue's depth, is not counted but observed: it is read when somebody asks.
 * M3: a series exists until it is removed; an observed one exists while its observer reports it.
 * M4: one registry for the process, as for OpenTelemetry's context: several services in one process share it.
 */

import type { InstrumentInfo } from "./instruments.ts";

export type Labels<Info extends InstrumentInfo> = Readonly<Record<Info["labels"][number], string>>;

/** A figure that only grows. */
export class CounterSeries {
  value = 0;

  add(amount = 1): void {
    this.value += amount;
  }
}

/** How many figures lie between which bounds. */
export class HistogramSeries {
  readonly bounds: readonly number[];
  /** One per bound and one above them; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.counts[bucket]!++;
    this.sum += value;
  }

  /** Observes the time since `startedAt`, of performance.now(). */
  observeSince(startedAt: number): void {
    this.observe((performance.now() - startedAt) / MS_PER_SECOND);
  }
}

/** Series of one instrument, by their labels. */
export class SeriesFamily<Info extends InstrumentInfo, Series> {
  readonly info: Info;
  readonly #make: () => Series;
  readonly #series = new Map<string, { labels: Labels<Info>; series: Series }>();

  constructor(info: Info, make: () => Series) {
    this.info = info;
    this.#make = make;
  }

  /** The series of these labels; made when it is missing (M1: keep it where it is needed often). */
  of(labels: Labels<Info>): Series {
    const key = this.#keyOf(labels);
    let entry = this.#series.get(key);
    if (entry === undefined) {
      entry = { labels, series: this.#make() };
      this.#series.set(key, entry);
    }
    return entry.series;
  }

  /** Ends a series (M3). */
  remove(labels: Labels<Info>): void {
    this.#series.delete(this.#keyOf(labels));
  }

  get entries(): Iterable<{ readonly labels: Labels<Info>; readonly series: Series }> {
    return this.#series.values();
  }

  #keyOf(labels: Labels<Info>): string {
    let key = "";
    for (const name of this.info.labels) key += `${labels[name as Info["labels"][number]]}\n`;
    return key;
  }
}

/** One figure that an observer reports. */
export interface Observation<Info extends InstrumentInfo> {
  readonly labels: Labels<Info>;
  readonly value: number;
}

type Observe<Info extends InstrumentInfo> = () =>
  | Iterable<Observation<Info>>
  | Promise<Iterable<Observation<Info>>>;

/** What the text of /metrics is made from. */
export interface Observer {
  readonly info: InstrumentInfo;
  readonly observe: Observe<InstrumentInfo>;
}

const MS_PER_SECOND = 1_000;
const counters = new Map<string, SeriesFamily<InstrumentInfo, CounterSeries>>();
const histograms = new Map<string, SeriesFamily<InstrumentInfo, HistogramSeries>>();
const observers = new Set<Observer>();

type CounterInfo = InstrumentInfo & { readonly kind: "counter" };
type HistogramInfo = InstrumentInfo & { readonly kind: "histogram"; readonly bounds: readonly number[] };

/** Series that are added to. Asking twice gives the same (M4). */
export function counterOf<Info extends CounterInfo>(info: Info): SeriesFamily<Info, CounterSeries> {
  return familyIn(counters, info, () => new CounterSeries());
}

/** Series that figures are spread over. Asking twice gives the same (M4). */
export function histogramOf<Info extends HistogramInfo>(info: Info): SeriesFamily<Info, HistogramSeries> {
  return familyIn(histograms, info, () => new HistogramSeries(info.bounds));
}

/** Reports figures whenever somebody asks (M2), until the result is disposed of. */
export function observeMetric<Info extends InstrumentInfo>(info: Info, observe: Observe<Info>): Disposable {
  const observer: Observer = { info, observe: observe as Observe<InstrumentInfo> };
  observers.add(observer);
  return { [Symbol.dispose]: () => void observers.delete(observer) };
}

/** All that this process counts and observes, for the text of /metrics. */
export function registeredMetrics() {
  return { counters: counters.values(), histograms: histograms.values(), observers: [...observers] };
}

function familyIn<Info extends InstrumentInfo, Series>(
  known: Map<string, SeriesFamily<InstrumentInfo, Series>>,
  info: Info,
  make: () => Series,
): SeriesFamily<Info, Series> {
  let family = known.get(info.name);
  if (family === undefined) {
    family = new SeriesFamily<InstrumentInfo, Series>(info, make);
    known.set(info.name, family);
  }
  return family as unknown as SeriesFamily<Info, Series>;
}
