/**
 * Keeps finished episodes from their delivery until their scores come.
 *
 * A scored episode points to the finished one (whole-episode.ts). Reading that by its position costs a request for each
 * episode, and a reader that gets the finished episodes as well, without acknowledging them, needs one only for those that came
 * before it started or that it had no space for. So what is kept here is never the only copy, and losing it loses nothing.
 */

import { delay } from "@hone/core";
import { type Consumer, type ConsumerMessages, DeliverPolicy } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import type { StoredMessage } from "../payloads/payload.ts";
import { DurableName, untilDurable } from "../streams/durables.ts";
import { isBeyondStream } from "../streams/stream-reset.ts";
import { StreamName } from "../streams/streams.ts";
import { subjects } from "../subjects.ts";
import { ENVELOPE_BYTES, REOPEN_DELAY_MS, STEADY_PULL } from "./read-ordered.ts";

/** The finished episodes of a few steps of most runs. */
const DEFAULT_MAX_BYTES = 64 * 1024 ** 2;

/** Finished episodes by their positions. If there is no space for another one, the oldest go. */
export class KeptEpisodes {
  readonly #maxBytes: number;
  readonly #episodes = new Map<number, StoredMessage>();
  #bytes = 0;

  constructor(maxBytes = DEFAULT_MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  keep(position: number, { subject, data, headers }: StoredMessage): void {
    this.take(position); // a stream that was started over gives its positions once more
    // A copy, as a view would hold the buffer of the whole read.
    this.#episodes.set(position, { subject, data: new Uint8Array(data), headers });
    this.#bytes += data.length + ENVELOPE_BYTES;
    for (const oldest of this.#episodes.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.take(oldest);
    }
  }

  /** @returns the episode at a position, which is kept no longer; undefined if it is not here. */
  take(position: number): StoredMessage | undefined {
    const episode = this.#episodes.get(position);
    if (episode === undefined) return undefined;
    this.#episodes.delete(position);
    this.#bytes -= episode.data.length + ENVELOPE_BYTES;
    return episode;
  }
}

/**
 * Keeps the finished episodes of one run from a position on, until the signal aborts. For a service that may create consumers.
 * @param onError called for lost connections, after which it goes on by itself.
 */
export function keepFinishedOf(
  bus: Bus,
  run: string,
  fromSequence: number,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): KeptEpisodes {
  const kept = new KeptEpisodes();
  let next = fromSequence;
  const open = async () => {
    if (await isBeyondStream(bus, StreamName.episodes, next)) next = 1;
    return bus.stream.consumers.get(StreamName.episodes, {
      filter_subjects: subjects.rolloutFinished(run),
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: next,
    });
  };
  const onKept = (position: number) => {
    next = position + 1;
  };
  void follow(kept, open, { signal, onError, onKept });
  return kept;
}

/**
 * The same for all runs, by the shared consumer that is there for it.
 * @param onError as in {@link keepFinishedOf}.
 */
export function keepFinished(bus: Bus, signal: AbortSignal, onError: (error: unknown) => void): KeptEpisodes {
  const kept = new KeptEpisodes();
  const durable = DurableName.shownEpisodes;
  const open = async () => {
    await untilDurable(bus, StreamName.episodes, durable, signal);
    return bus.stream.consumers.get(StreamName.episodes, durable);
  };
  void follow(kept, open, { signal, onError });
  return kept;
}

interface FollowOptions {
  readonly signal: AbortSignal;
  readonly onError: (error: unknown) => void;
  readonly onKept?: (position: number) => void;
}

/** Never rejects. */
async function follow(
  kept: KeptEpisodes,
  open: () => Promise<Consumer>,
  { signal, onError, onKept }: FollowOptions,
): Promise<void> {
  let messages: ConsumerMessages | undefined;
  const stop = () => void messages?.close();
  signal.addEventListener("abort", stop, { once: true });
  while (!signal.aborted) {
    try {
      const consumer = await open();
      messages = await consumer.consume(STEADY_PULL);
      if (signal.aborted) stop();
      for await (const message of messages) {
        kept.keep(message.seq, message);
        onKept?.(message.seq);
      }
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
    if (!signal.aborted) await delay(REOPEN_DELAY_MS);
  }
  signal.removeEventListener("abort", stop);
  stop();
}
