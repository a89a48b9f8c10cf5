/**
 * Metrics of the bus.
 *
 * B1: labels never hold a run, a replica or a message, only the noun and verb of a subject.
 * B2: the series of a subject is looked up once and cached. When the cache has too many subjects it is emptied.
 */

import { counterOf, type HistogramSeries, histogramOf, Instrument } from "@hone/telemetry";

/** The result of a request, or of answering one. */
type Result = "ok" | "failed";

const published = counterOf(Instrument.published);
const publishFailed = counterOf(Instrument.publishFailed);
const requestSeconds = histogramOf(Instrument.requestSeconds);
const answerSeconds = histogramOf(Instrument.answerSeconds);
/** A stack uses tens of subjects at a time; every run adds some. */
const MAX_KNOWN_SUBJECTS = 4_096;
/** Nouns whose subjects have no verb: their key follows directly. */
const NOUNS_WITHOUT_VERB: ReadonlySet<string> = new Set(["event", "dead"]);

/** @returns noun and verb of a subject, such as `rollout.job`, or `payload` for parts of large bodies (B1). */
export function destinationOf(subject: string): string {
  if (subject.startsWith("$O.")) return "payload";
  const [, , noun = "", verb = ""] = subject.split(".", 4);
  return NOUNS_WITHOUT_VERB.has(noun) ? noun : `${noun}.${verb}`;
}

/** Caches the series of each subject (B2). */
function bySubject<Series>(find: (destination: string) => Series): (subject: string) => Series {
  const known = new Map<string, Series>();
  return (subject) => {
    let series = known.get(subject);
    if (series === undefined) {
      if (known.size >= MAX_KNOWN_SUBJECTS) known.clear();
      series = find(destinationOf(subject));
      known.set(subject, series);
    }
    return series;
  };
}

const publishedTo = bySubject((destination) => published.of({ destination }));
const publishFailedTo = bySubject((destination) => publishFailed.of({ destination }));
const secondsOf = (family: typeof requestSeconds | typeof answerSeconds, result: Result) =>
  bySubject((destination): HistogramSeries => family.of({ destination, result }));
const asked = { ok: secondsOf(requestSeconds, "ok"), failed: secondsOf(requestSeconds, "failed") };
const answered = { ok: secondsOf(answerSeconds, "ok"), failed: secondsOf(answerSeconds, "failed") };

/** Counts a message that its stream acknowledged, or one that could not be published. */
export function countPublished(subject: string, isStored: boolean): void {
  (isStored ? publishedTo(subject) : publishFailedTo(subject)).add();
}

/** Counts a request that has ended. @param startedAt time of performance.now() */
export function countRequest(subject: string, startedAt: number, result: Result): void {
  asked[result](subject).observeSince(startedAt);
}

/** Counts a request that this process answered. @param startedAt time of performance.now() */
export function countAnswer(subject: string, startedAt: number, result: Result): void {
  answered[result](subject).observeSince(startedAt);
}
