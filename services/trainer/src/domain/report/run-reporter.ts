/**
 * Publishes what a run is doing: its state and its events.
 *
 * R1: the state names what the loop waits for, and since when.
 * R2: soft changes (phase, waiting) are published in the background, at most once per interval; a new version is
 *     published before the loop goes on.
 * R3: the state is written by one writer at a time, in order; a higher epoch found there ends this owner.
 */

import { delay, describeError, RetryableError, retry } from "@hone/core";
import { type Logger, MetricName } from "@hone/telemetry";
import { OwnershipLostError } from "../errors.ts";
import { EventOutbox } from "./event-outbox.ts";
import type { RunEvent, RunEvents } from "./run-event.ts";
import type { GatheredTroubles, LastStep, RunStateBoard } from "./run-status.ts";
import { NO_WAIT, type RunPhase, type RunStatus } from "./run-status.ts";
import type { Wait } from "./wait.ts";

/** Least time between two soft writes of the state. */
const SOFT_INTERVAL_MS = 500;
/** Bounds of the pause between two tries while something cannot be reached. */
const AWAY_MIN_DELAY_MS = 100;
const AWAY_MAX_DELAY_MS = 2_000;

export interface ReporterDeps {
  readonly board: RunStateBoard;
  readonly events: RunEvents;
  readonly logger: Logger;
  /** Stops the reporter; pending changes are dropped. */
  readonly signal: AbortSignal;
  /** Called once when a higher epoch is found (R3). */
  readonly onOwnershipLost: (error: OwnershipLostError) => void;
}

export class RunReporter {
  readonly #deps: ReporterDeps;
  readonly #outbox: EventOutbox;
  #status: RunStatus;
  #lastStep: LastStep = { atMs: Date.now(), mismatchMean: undefined };
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

  /** The last step that this owner reported; before that, when it began, without figures. */
  get lastStep(): LastStep {
    return this.#lastStep;
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

  /** Names what the run waits for, and who must act (R1). */
  waiting({ text, owner, key = text, sinceMs }: Wait): void {
    const isKnown = this.#waitingKey === key;
    if (isKnown && this.#status.waitingFor === text && this.#status.waitingOwner === owner) return;
    const waitingSinceMs = sinceMs ?? (isKnown ? this.#status.waitingSinceMs : Date.now());
    this.#waitingKey = key;
    this.#change({ waitingFor: text, waitingOwner: owner, waitingSinceMs });
  }

  /** Says that the wait is over. */
  clearWait(): void {
    if (this.#waitingKey === "") return;
    this.#waitingKey = "";
    this.#change(NO_WAIT);
  }

  /** Does work that depends on others and tries again until it succeeds; meanwhile the state names the wait (R1). */
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
      this.clearWait();
    }
  }

  /** Publishes what went wrong in the rollouts that were gathered last; undefined = nothing did. */
  troubles(troubles: GatheredTroubles | undefined): void {
    if (troubles !== undefined || this.#status.troubles !== undefined) this.#change({ troubles });
  }

  event(event: RunEvent, messageId?: string): void {
    if (event.kind === "step")
      this.#lastStep = { atMs: Date.now(), mismatchMean: event.metrics[MetricName.mismatchMean] };
    this.#outbox.send(event, messageId);
  }

  /** Sends the progress of gathering rollouts: at most twice a second, and the latest always at the end. */
  progress(progress: { step: number; rolloutsDone: number; rolloutsTotal: number }): void {
    this.#sendLatest({ kind: "progress", ...progress }, progress.rolloutsDone === progress.rolloutsTotal);
  }

  /** Sends the progress of the warm start; while rollouts are gathered, at most twice a second. */
  warmStartProgress(progress: Omit<Extract<RunEvent, { kind: "warm-start" }>, "kind">): void {
    const isDone = progress.updatesDone > 0 || progress.rolloutsDone === progress.rolloutsTotal;
    this.#sendLatest({ kind: "warm-start", ...progress }, isDone);
  }

  /** Publishes a change and returns once it is stored (R2). @throws {OwnershipLostError} (R3) */
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

  /** Publishes the last changes, unless the signal has aborted; nothing is written afterwards. */
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
      // The signal has aborted, or the ownership is lost and `onOwnershipLost` was called: nothing more is published.
      logger.debug("the state is no longer published", { error: describeError(error) });
    }
  }

  /** Waits for the interval of R2; ends early when the reporter settles or the signal aborts. */
  async #pauseBetweenWrites(): Promise<void> {
    const pauseMs = this.#lastWrite + SOFT_INTERVAL_MS - performance.now();
    if (pauseMs <= 0 || this.#hurry.signal.aborted) return;
    await delay(pauseMs, { signal: AbortSignal.any([this.#deps.signal, this.#hurry.signal]) }).catch(
      () => undefined,
    );
  }

  /** Writes one at a time; callers that come meanwhile share the write that is running. */
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
