/**
 * Forwards every accepted export, unchanged, to another OTLP/HTTP receiver.
 *
 * F1: the sender of the spans never waits for the receiver: at most MAX_QUEUED_BYTES are queued, and more is dropped and
 *     counted.
 * F2: an export is sent again only after 429, 502, 503, 504 and when the receiver cannot be reached (OTLP specification,
 *     "Failures"), after the pause that the answer asks for or else a growing one. After MAX_ATTEMPTS it is dropped and
 *     counted.
 * F3: exports are sent in the order in which they came, a few at a time.
 */

import { BoundedQueue, delay, describeError } from "@hone/core";
import type { Logger } from "@hone/telemetry";

/** An export as it was received. */
export interface ForwardedExport {
  readonly body: Uint8Array;
  readonly contentType: string;
  readonly contentEncoding: string | undefined;
}

const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const MAX_QUEUED_EXPORTS = 4_096;
const MAX_CONCURRENT = 4;
const MAX_ATTEMPTS = 6;
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;
const REPORT_INTERVAL_MS = 30_000;
const RETRYABLE_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

type Attempt =
  | { readonly kind: "sent" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "later"; readonly pauseMs: number | undefined; readonly reason: string };

export class OtlpForwarder {
  readonly #url: string;
  readonly #logger: Logger;
  readonly #queue = new BoundedQueue<ForwardedExport>(MAX_QUEUED_EXPORTS);
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #queuedBytes = 0;
  #forwarded = 0;
  #dropped = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  /** @param endpoint base address; /v1/traces is appended where it is missing. */
  constructor(endpoint: string, logger: Logger) {
    const base = endpoint.replace(/\/+$/, "");
    this.#url = base.endsWith("/v1/traces") ? base : `${base}/v1/traces`;
    this.#logger = logger;
    this.#running = this.#run();
  }

  /** Numbers of exports that were forwarded and dropped since the start. */
  get counts(): { readonly forwarded: number; readonly dropped: number } {
    return { forwarded: this.#forwarded, dropped: this.#dropped };
  }

  /** Queues an export, or drops it (F1). */
  offer(item: ForwardedExport): void {
    if (this.#queuedBytes + item.body.length > MAX_QUEUED_BYTES || !this.#queue.offer(item)) {
      this.#drop("its queue is full");
      return;
    }
    this.#queuedBytes += item.body.length;
  }

  /** Sends what is queued and ends; when the signal aborts, drops the rest. */
  async close(signal: AbortSignal): Promise<void> {
    this.#queue.close();
    const stop = () => this.#stopping.abort();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    await this.#running;
    signal.removeEventListener("abort", stop);
  }

  async #run(): Promise<void> {
    const sending = new Set<Promise<void>>();
    for await (const item of this.#queue) {
      const sent = this.#send(item).finally(() => {
        this.#queuedBytes -= item.body.length;
        sending.delete(sent);
      });
      sending.add(sent);
      if (sending.size >= MAX_CONCURRENT) await Promise.race(sending);
    }
    await Promise.all(sending);
  }

  /** Never rejects. */
  async #send(item: ForwardedExport): Promise<void> {
    let reason = "the service stops";
    for (let attempt = 1; attempt <= MAX_ATTEMPTS && !this.#stopping.signal.aborted; attempt++) {
      const outcome = await this.#try(item);
      if (outcome.kind === "sent") {
        this.#forwarded++;
        return;
      }
      reason = outcome.reason;
      if (outcome.kind === "refused") break;
      const pauseMs = outcome.pauseMs ?? MIN_PAUSE_MS * 2 ** (attempt - 1);
      if (attempt < MAX_ATTEMPTS) {
        // When the signal aborts, the condition of the loop ends it.
        await delay(Math.min(pauseMs, MAX_PAUSE_MS), { signal: this.#stopping.signal }).catch(
          () => undefined,
        );
      }
    }
    this.#drop(reason);
  }

  async #try(item: ForwardedExport): Promise<Attempt> {
    try {
      const answer = await fetch(this.#url, {
        method: "POST",
        body: item.body,
        headers: {
          "content-type": item.contentType,
          ...(item.contentEncoding !== undefined && { "content-encoding": item.contentEncoding }),
        },
        signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
      });
      await answer.body?.cancel();
      if (answer.ok) return { kind: "sent" };
      const reason = `the receiver answered ${answer.status}`;
      if (!RETRYABLE_STATUS.has(answer.status)) return { kind: "refused", reason };
      return { kind: "later", pauseMs: retryAfterMs(answer.headers.get("retry-after")), reason };
    } catch (error) {
      return { kind: "later", pauseMs: undefined, reason: describeError(error) };
    }
  }

  #drop(reason: string): void {
    this.#dropped++;
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_INTERVAL_MS) return;
    this.#reportedAt = now;
    this.#logger.warn("exports were not forwarded", { reason, droppedSoFar: this.#dropped });
  }
}

/** Reads the header Retry-After, which is a number of seconds or a date. */
function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}
