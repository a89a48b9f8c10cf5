/**
 * What the bus counts.
 *
 * B1: labels never hold a run, a replica or a message: of a subject only its noun and verb.
 * B2: series are found by the whole subject once and kept, as long as subjects are few; a bus with very many starts over.
 */

import { counterOf, type HistogramSeries, histogramOf, Instrument } from "@hone/telemetry";

/** How a request or an answer to one went. */
type Result = "ok" | "failed";

const published = counterOf(Instrument.published);
const publishFailed = counterOf(Instrument.publishFailed);
const requestSeconds = histogramOf(Instrument.requestSeconds);
const answerSeconds = histogramOf(Instrument.answerSeconds);
/** A stack has tens of subjects at a time; every run brings some of its own. */
const MAX_KNOWN_SUBJECTS = 4_096;
/** Nouns whose subjects have their key where others have a verb. */
const NOUNS_WITHOUT_VERB: ReadonlySet<string> = new Set(["event", "dead"]);

/** Noun and verb of a subject, such as `rollout.job`, or `payload` for parts of large bodies (B1). */
export function destinationOf(subject: string): string {
  if (subject.startsWith("$O.")) return "payload";
  const [, , noun = "", verb = ""] = subject.split(".", 4);
  return NOUNS_WITHOUT_VERB.has(noun) ? noun : `${noun}.${verb}`;
}

/** Remembers what is found for a subject (B2). */
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

/** A message that its stream acknowledged, or one that was given up. */
export function countPublished(subject: string, isStored: boolean): void {
  (isStored ? publishedTo(subject) : publishFailedTo(subject)).add();
}

/** A request that came to its end. @param startedAt of performance.now() */
export function countRequest(subject: string, startedAt: number, result: Result): void {
  asked[result](subject).observeSince(startedAt);
}

/** A request of another that was answered here. @param startedAt of performance.now() */
export function countAnswer(subject: string, startedAt: number, result: Result): void {
  answered[result](subject).observeSince(startedAt);
}
