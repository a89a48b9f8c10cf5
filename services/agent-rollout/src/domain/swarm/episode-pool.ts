/**
 * The episodes of this process that clients play: those that wait, those that clients have, and for a while those that are over,
 * so that late and repeated requests get the right answer.
 *
 * P1: An episode that waits is given to the client that asked first, and the episode that waited longest is given first.
 * P2: A claim names at most one episode: the same claim again gets the same one.
 * P3: Everything that clients can make this process keep is bounded: clients that wait, how long they wait, and what is kept of
 *     episodes that are over. Episodes come from jobs, of which the process takes a bounded number.
 */

import { type AgentResult, AttemptTimedOutError } from "@hone/agents";
import { describeError, pause } from "@hone/core";
import { counterOf, Instrument, observeMetric } from "@hone/telemetry";
import { RolloutCancelledError, ServiceStoppingError } from "../errors.ts";
import type { RolloutRecord } from "../rollout-job.ts";
import { EpisodeNotBegunError, EpisodeOver, TooManyWaitingError, UnknownEpisodeError } from "./errors.ts";
import type { JobEpisodes } from "./job-episodes.ts";
import { LentEpisode, type LentEpisodeParts } from "./lent-episode.ts";

/** Clients that may wait at once; each holds a connection, of which a process has a thousand for everything. */
const MAX_WAITING_CLIENTS = 256;
/** How long an episode that is over is remembered: clients repeat a request within seconds. */
const KEPT_MS = 600_000;
/** Most episodes that are remembered after their end, of some hundred bytes each. */
const MAX_KEPT = 20_000;

const returns = counterOf(Instrument.swarmReturns);

export interface BeginOptions {
  /** How long the client waits for an episode. */
  readonly waitMs: number;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

export class EpisodePool {
  readonly #baseUrl: string;
  readonly #episodes = new Map<string, LentEpisode>();
  /** By run and claim (P2). */
  readonly #claims = new Map<string, LentEpisode>();
  readonly #waitingEpisodes = new Map<string, Set<LentEpisode>>();
  readonly #waitingClients = new Map<string, Set<WaitingClient>>();
  #numWaitingClients = 0;
  readonly #kept: { readonly episode: LentEpisode; readonly until: number }[] = [];
  /** The claim of each episode that has one, to forget both together. */
  readonly #claimOf = new Map<LentEpisode, string>();
  readonly #observer: Disposable;
  #isDraining = false;

  /** @param baseUrl address at which clients reach this process, without a slash at its end. */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
    this.#observer = observeMetric(Instrument.swarmEpisodes, () => {
      const { waiting, lent } = this.counts();
      return [
        { labels: { state: "waiting" }, value: waiting },
        { labels: { state: "lent" }, value: lent },
      ];
    });
  }

  counts(): { readonly waiting: number; readonly lent: number } {
    let waiting = 0;
    let lent = 0;
    for (const episode of this.#episodes.values()) {
      if (episode.isWaiting) waiting++;
      if (episode.isLent) lent++;
    }
    return { waiting, lent };
  }

  /** Ids of the runs of which an episode waits for a client. */
  waitingRuns(): string[] {
    return [...this.#waitingEpisodes.keys()].sort();
  }

  /** For the attempts of one job. */
  ofJob(): JobEpisodes {
    let latest: LentEpisode | undefined;
    return {
      offer: async (parts, signal) => {
        latest = new LentEpisode(parts, this.#baseUrl);
        return this.#offer(latest, parts, signal);
      },
      failed: (reason) => latest?.lost(EpisodeOver.attemptEnded, reason),
      stored: ({ outcome, reason }: RolloutRecord, isDuplicate) => {
        if (isDuplicate)
          latest?.lost(EpisodeOver.storedBefore, "its rollout was stored before by a process that died");
        else latest?.stored(outcome, reason);
      },
    };
  }

  /**
   * Gives a client an episode of a run.
   * @param claim the client's name for what it asks for (P2).
   * @returns undefined if none comes in time, or the client asks once more with the same claim.
   * @throws {EpisodeOverError | EpisodeEndedError} when the claim's episode is over.
   * @throws {TooManyWaitingError | ServiceStoppingError}
   */
  async begin(runId: string, claim: string, options: BeginOptions): Promise<LentEpisode | undefined> {
    if (this.#isDraining) throw new ServiceStoppingError();
    const key = `${runId}/${claim}`;
    const known = this.#claims.get(key);
    if (known !== undefined) {
      known.renew();
      return known;
    }
    const [first] = this.#waitingEpisodes.get(runId) ?? [];
    if (first !== undefined) {
      this.#lend(first, key);
      return first;
    }
    return this.#wait(runId, key, options);
  }

  /** @throws {UnknownEpisodeError} */
  find(id: string): LentEpisode {
    const episode = this.#episodes.get(id);
    // The id of an episode that nobody has is not known to anybody.
    if (episode === undefined || episode.isWaiting) throw new UnknownEpisodeError(id);
    return episode;
  }

  /** Gives back at once what waits, and lends nothing more; clients may end what they have. */
  drain(): void {
    this.#isDraining = true;
    for (const episode of this.#episodes.values()) {
      if (episode.isWaiting) giveUp(episode, new ServiceStoppingError());
    }
    for (const clients of this.#waitingClients.values()) for (const client of clients) client.leave();
  }

  /** Ends everything. */
  close(): void {
    this.drain();
    for (const episode of this.#episodes.values()) giveUp(episode, new ServiceStoppingError());
    this.#observer[Symbol.dispose]();
  }

  async #offer(
    episode: LentEpisode,
    { clock, beginDeadlineMs }: LentEpisodeParts,
    signal: AbortSignal,
  ): Promise<AgentResult> {
    const result = episode.result();
    this.#episodes.set(episode.id, episode);
    clock.stop();
    const onAbort = () => giveUp(episode, signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    else if (this.#isDraining) giveUp(episode, new ServiceStoppingError());
    else this.#park(episode);
    const timer =
      beginDeadlineMs === undefined
        ? undefined
        : setTimeout(() => {
            if (episode.isWaiting) giveUp(episode, new EpisodeNotBegunError(beginDeadlineMs));
          }, beginDeadlineMs);
    try {
      return await result;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#unpark(episode);
      this.#keep(episode);
    }
  }

  /** P1 */
  #park(episode: LentEpisode): void {
    const [client] = this.#waitingClients.get(episode.runId) ?? [];
    if (client !== undefined) {
      this.#lend(episode, client.key);
      client.take(episode);
      return;
    }
    const waiting = this.#waitingEpisodes.get(episode.runId) ?? new Set();
    this.#waitingEpisodes.set(episode.runId, waiting.add(episode));
  }

  #unpark(episode: LentEpisode): void {
    const waiting = this.#waitingEpisodes.get(episode.runId);
    waiting?.delete(episode);
    if (waiting?.size === 0) this.#waitingEpisodes.delete(episode.runId);
  }

  #lend(episode: LentEpisode, key: string): void {
    this.#unpark(episode);
    episode.lend((why) => returns.of({ why }).add());
    this.#claims.set(key, episode);
    this.#claimOf.set(episode, key);
  }

  async #wait(
    runId: string,
    key: string,
    { waitMs, signal }: BeginOptions,
  ): Promise<LentEpisode | undefined> {
    const clients = this.#waitingClients.get(runId) ?? new Set<WaitingClient>();
    for (const client of clients) if (client.key === key) client.leave();
    if (waitMs === 0 || signal.aborted) return undefined;
    if (this.#numWaitingClients >= MAX_WAITING_CLIENTS) throw new TooManyWaitingError(MAX_WAITING_CLIENTS); // P3
    const over = new AbortController();
    let taken: LentEpisode | undefined;
    const client: WaitingClient = {
      key,
      take: (episode) => {
        taken = episode;
        leave();
      },
      leave: () => leave(),
    };
    const leave = () => {
      if (clients.delete(client)) this.#numWaitingClients--;
      if (clients.size === 0 && this.#waitingClients.get(runId) === clients)
        this.#waitingClients.delete(runId);
      over.abort();
    };
    this.#waitingClients.set(runId, clients.add(client));
    this.#numWaitingClients++;
    try {
      await pause(waitMs, AbortSignal.any([signal, over.signal]));
      return taken;
    } finally {
      leave();
    }
  }

  /** P3 */
  #keep(episode: LentEpisode): void {
    if (!this.#claimOf.has(episode)) {
      this.#episodes.delete(episode.id);
      return;
    }
    const now = performance.now();
    this.#kept.push({ episode, until: now + KEPT_MS });
    while (this.#kept.length > MAX_KEPT || (this.#kept[0]?.until ?? now) < now) this.#forget();
  }

  #forget(): void {
    const oldest = this.#kept.shift();
    if (oldest === undefined) return;
    const { episode } = oldest;
    this.#episodes.delete(episode.id);
    const key = this.#claimOf.get(episode);
    this.#claimOf.delete(episode);
    if (key !== undefined) this.#claims.delete(key);
  }
}

/** A client that waits for an episode. */
interface WaitingClient {
  /** Its run and claim. */
  readonly key: string;
  take(episode: LentEpisode): void;
  /** Lets it go without an episode. */
  leave(): void;
}

/** Ends an episode together with its attempt. */
function giveUp(episode: LentEpisode, error: unknown): void {
  const why =
    error instanceof AttemptTimedOutError
      ? EpisodeOver.timedOut
      : error instanceof RolloutCancelledError
        ? EpisodeOver.runOver
        : error instanceof ServiceStoppingError
          ? EpisodeOver.givenBack
          : EpisodeOver.attemptEnded;
  episode.giveUp(error, why, describeError(error));
}
