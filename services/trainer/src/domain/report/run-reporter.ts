/**
 * Tells the world what a run is doing: its published state and its events.
 *
 * R1: whatever the loop waits for is named in the state, with the time since when.
 * R2: soft changes (phase, waiting) are published in the background, at most once per interval; a new version is
 *     published before the loop goes on.
 * R3: the state is written by one writer at a time, in order; a higher epoch found there ends this owner.
 */

import { delay, describeError, RetryableError, retry } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { OwnershipLostError } from "../errors.ts";
import { EventOutbox } from "./event-outbox.ts";
import type { RunEvent, RunEvents } from "./run-event.ts";
import type { GatheredTroubles, RunStateBoard } from "./run-status.ts";
import { NO_WAIT, type RunPhase, type RunStatus } from "./run-status.ts";
import type { Wait } from "./wait.ts";

/** Two soft writes of the state lie this far apart. */
const SOFT_INTERVAL_MS = 500;
/** Pauses between tries of something that is away. */
const AWAY_MIN_DELAY_MS = 100;
const AWAY_MAX_DELAY_MS = 2_000;

export interface ReporterDeps {
  readonly board: RunStateBoard;
  readonly events: RunEvents;
  readonly logger: Logger;
  /** Stops the reporter; what is pending is given up. */
  readonly signal: AbortSignal;
  /** Called once when a higher epoch is found (R3). */
  readonly onOwnershipLost: (error: OwnershipLostError) => void;
}

export class RunReporter {
  readonly #deps: ReporterDeps;
  readonly #outbox: EventOutbox;
  #status: RunStatus;
  #waitingKey = "";
  #wanted = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #softWriting: Promise<void> | undefined;
  #lastWrite = Number.NEGATIVE_INFINITY;
  #lastProgress = Number.NEGATIVE_INFINITY;
  #latestProgress: RunEvent | undefined;
  readonly #hurry = new AbortController();
  #progressTimer: NodeJS.Timeout | undefined;

  constructor(initial: RunStatus, deps: ReporterDeps) {
    this.#status = initial;
    this.#deps = deps;
    this.#outbox = new EventOutbox(initial.runId, deps.events, deps.logger, deps.signal);
  }

  get status(): RunStatus {
    return this.#status;
  }

  /** Enters a phase. */
  phase(phase: RunPhase, step: number): void {
    if (this.#status.phase === phase) return;
    this.#change({ phase, ...NO_WAIT });
    this.#waitingKey = "";
    this.event({ kind: "phase", phase, step, waitingFor: "" });
  }

  /** Names what the run waits for, and whose turn it is (R1). */
  waiting({ text, owner, key = text, sinceMs }: Wait): void {
    const isKnown = this.#waitingKey === key;
    if (isKnown && this.#status.waitingFor === text && this.#status.waitingOwner === owner) return;
    const waitingSinceMs = sinceMs ?? (isKnown ? this.#status.waitingSinceMs : Date.now());
    this.#waitingKey = key;
    this.#change({ waitingFor: text, waitingOwner: owner, waitingSinceMs });
  }

  /** The wait is over. */
  waitingNoMore(): void {
    if (this.#waitingKey === "") return;
    this.#waitingKey = "";
    this.#change(NO_WAIT);
  }

  /** Does something that others may be away for, trying until it works; the state names it meanwhile (R1). */
  async untilAvailable<T>(wait: Wait, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal, logger } = this.#deps;
    const { text, owner, failedOwner = owner } = wait;
    this.waiting(wait);
    try {
      return await retry(() => work(signal), {
        signal,
        minDelayMs: AWAY_MIN_DELAY_MS,
        maxDelayMs: AWAY_MAX_DELAY_MS,
        isRetryable: (error) => error instanceof RetryableError,
        onRetry: (error, attempt) => {
          this.waiting({ ...wait, owner: failedOwner, key: text, text: `${text} (${describeError(error)})` });
          if (attempt === 1 || attempt % 30 === 0) {
            logger.warn(`waits for ${text}`, { attempt, error: describeError(error) });
          }
        },
      });
    } finally {
      this.waitingNoMore();
    }
  }

  /** Says what went wrong in the rollouts that were gathered last; undefined = nothing did. */
  troubles(troubles: GatheredTroubles | undefined): void {
    if (troubles !== undefined || this.#status.troubles !== undefined) this.#change({ troubles });
  }

  event(event: RunEvent, messageId?: string): void {
    this.#outbox.send(event, messageId);
  }

  /** Progress of a gathering: at most twice a second, the latest always in the end. */
  progress(progress: { step: number; rolloutsDone: number; rolloutsTotal: number }): void {
    this.#sendLatest({ kind: "progress", ...progress }, progress.rolloutsDone === progress.rolloutsTotal);
  }

  /** Progress of the warm start; while rollouts are gathered, at most twice a second. */
  warmStartProgress(progress: Omit<Extract<RunEvent, { kind: "warm-start" }>, "kind">): void {
    const isDone = progress.updatesDone > 0 || progress.rolloutsDone === progress.rolloutsTotal;
    this.#sendLatest({ kind: "warm-start", ...progress }, isDone);
  }

  /** Publishes a change and returns when it stands (R2). @throws {OwnershipLostError} (R3) */
  async publish(change: Partial<RunStatus>): Promise<void> {
    this.#change(change);
    const wanted = this.#wanted;
    while (this.#written < wanted) {
      this.#deps.signal.throwIfAborted();
      await this.#write();
    }
  }

  /** Waits for the events that are queued. */
  drain(): Promise<void> {
    return this.#outbox.drain();
  }

  /** Brings out what was changed, unless the signal says that nobody listens any more; nothing is written after it. */
  async settle(): Promise<void> {
    clearTimeout(this.#progressTimer);
    this.#hurry.abort();
    await this.#softWriting;
    await this.#writing?.catch(() => undefined);
  }

  #sendLatest(event: RunEvent, isDone: boolean): void {
    this.#latestProgress = event;
    const pauseMs = isDone ? 0 : this.#lastProgress + SOFT_INTERVAL_MS - performance.now();
    if (pauseMs <= 0) {
      clearTimeout(this.#progressTimer);
      this.#progressTimer = undefined;
      this.#sendProgress();
    } else {
      this.#progressTimer ??= setTimeout(() => {
        this.#progressTimer = undefined;
        this.#sendProgress();
      }, pauseMs);
    }
  }

  #sendProgress(): void {
    if (this.#latestProgress === undefined) return;
    this.event(this.#latestProgress);
    this.#latestProgress = undefined;
    this.#lastProgress = performance.now();
  }

  #change(change: Partial<RunStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#wanted++;
    this.#softWriting ??= this.#writeSoon().finally(() => {
      this.#softWriting = undefined;
    });
  }

  async #writeSoon(): Promise<void> {
    const { signal, logger } = this.#deps;
    try {
      while (this.#written < this.#wanted) {
        await this.#pauseBetweenWrites();
        signal.throwIfAborted();
        if (this.#written < this.#wanted) await this.#write();
      }
    } catch (error) {
      // The signal, or a lost ownership that `onOwnershipLost` was told of: nothing more is published.
      logger.debug("the state is published no more", { error: describeError(error) });
    }
  }

  /** R2; ends early when the reporter settles or the signal aborts. */
  async #pauseBetweenWrites(): Promise<void> {
    const pauseMs = this.#lastWrite + SOFT_INTERVAL_MS - performance.now();
    if (pauseMs <= 0 || this.#hurry.signal.aborted) return;
    await delay(pauseMs, { signal: AbortSignal.any([this.#deps.signal, this.#hurry.signal]) }).catch(
      () => undefined,
    );
  }

  /** One write at a time; callers that come meanwhile share the one that runs. */
  #write(): Promise<void> {
    this.#writing ??= this.#writeNow().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #writeNow(): Promise<void> {
    const { board, signal } = this.#deps;
    const generation = this.#wanted;
    const status = this.#status;
    const isOurs = await retry(() => board.publish(status), { signal, maxDelayMs: AWAY_MAX_DELAY_MS });
    if (!isOurs) {
      const error = new OwnershipLostError(status.runId, status.epoch);
      this.#deps.onOwnershipLost(error);
      throw error;
    }
    this.#written = generation;
    this.#lastWrite = performance.now();
  }
}
