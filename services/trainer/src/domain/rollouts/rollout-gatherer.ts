/**
 * From slots to rollouts: publishes the jobs that are missing and waits for their scored episodes.
 *
 * G1: what is stored in the stream already is read before anything is published, so a restart makes no rollout again.
 * G2: publishing is idempotent: the queue refuses a slot that it saw lately, and of two episodes the first counts.
 * G3: after a long silence the missing jobs are published once more, under new names, where the queue has none of the
 *     run's any more; this heals a queue or a stream that lost them.
 * G4: after a short silence the bus is looked at, and the run's status names whose turn it is; nothing is asked while
 *     rollouts arrive.
 * G5: jobs that cannot go out, as the queue is full or other runs' jobs come first, are told of with the wait.
 * G6: where the stream of episodes is full, what the run needs no more is dropped from it again, as other readers may have
 *     been behind before. Where that does not help and it keeps steps for a replay, the tenure ends: the next one
 *     replays them, and needs them no more.
 */

import { delay, describeError, pause, RetryableError, retry, type Slot, slotKey } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { EpisodesFullError, LostRolloutsError } from "../errors.ts";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunProgress, RunRecord } from "../run/run-record.ts";
import { dropUnneededEpisodes } from "../state/episode-room.ts";
import { isReplayFree } from "../state/state-cadence.ts";
import type { Pipeline } from "./find-holdup.ts";
import { findHoldup } from "./find-holdup.ts";
import { JobPacer } from "./job-pacer.ts";
import type { Job, JobQueue } from "./jobs.ts";
import type { RolloutInbox } from "./rollout-inbox.ts";
import type { RolloutTraces } from "./rollout-traces.ts";
import type { ScoredRollout, ScoredRollouts } from "./scored-rollout.ts";

/** Jobs being published at once; their acknowledgements come back in batches. */
const PUBLISH_WINDOW = 256;
/** How long to wait for what the stream holds already before publishing anyway (G2 makes that harmless). */
const CATCH_UP_DEADLINE_MS = 10_000;
/** Silence after which missing jobs are published again, above a rollout's own deadline (G3). */
const DEFAULT_SILENCE_MS = 120_000;
const REOPEN_DELAY_MS = 500;
/** Silence after which one wants to know why (G4): above the length of most rollouts. */
const QUIET_MS = 3_000;
/** Silence after which a full stream is not waited for any longer (G6): judge and tracer empty their queues within it. */
const DEFAULT_FULL_MS = 20_000;

export interface GathererDeps {
  readonly run: RunRecord;
  readonly jobs: JobQueue;
  readonly rollouts: ScoredRollouts;
  readonly pipeline: Pipeline;
  readonly inbox: RolloutInbox;
  readonly progress: Pick<RunProgress, "version" | "recovery" | "neededFrom">;
  readonly traces: RolloutTraces;
  readonly reporter: RunReporter;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Above a rollout's deadline, after which missing jobs are published again. @default 120_000 */
  readonly silenceMs?: number;
  /** How long a full stream of episodes is waited for before steps are replayed to make room. @default 20_000 */
  readonly fullMs?: number;
}

/** Jobs that are still to be published, and why they are held; "" = they are not (G5). */
interface Unpublished {
  count: number;
  reason: string;
}

export class RolloutGatherer {
  readonly #deps: GathererDeps;
  #backlogRead: Promise<void> | undefined;

  constructor(deps: GathererDeps) {
    this.#deps = deps;
  }

  /** Reads the run's part of the stream into the inbox until the signal aborts. */
  async read(): Promise<void> {
    const { run, rollouts, inbox, traces, logger, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        for await (const scored of rollouts.read(run.runId, inbox.nextSequence, signal)) {
          if (inbox.offer(scored)) traces.scored(scored);
        }
      } catch (error) {
        if (signal.aborted) return;
        logger.warn("reading scored rollouts is interrupted", { error: describeError(error) });
        await delay(REOPEN_DELAY_MS);
      }
    }
  }

  /**
   * Gathers the rollouts of `jobs`, in their order.
   * @param what named in the run's status, such as "step 3".
   */
  async gather(
    what: string,
    jobs: readonly Job[],
    onProgress: (done: number, total: number) => void,
  ): Promise<ScoredRollout[]> {
    const { inbox, reporter, signal } = this.#deps;
    this.#backlogRead ??= this.#readBacklog();
    await this.#backlogRead; // G1
    const ended = new AbortController();
    const all = AbortSignal.any([signal, ended.signal]);
    const sinceMs = Date.now();
    let lastArrival = performance.now();
    const unpublished: Unpublished = { count: 0, reason: "" };
    const collected = inbox.collect(
      jobs.map(({ slot }) => slot),
      (done) => {
        lastArrival = performance.now();
        const text = `${jobs.length - done} of ${jobs.length} rollouts of ${what}${heldText(unpublished)}`;
        reporter.waiting({ text, owner: WaitOwner.agentRollout, key: what, sinceMs });
        onProgress(done, jobs.length);
      },
      all,
    );
    try {
      const published = this.#publishMissing(jobs, unpublished, all).then(() =>
        this.#heal(jobs, () => lastArrival, unpublished, all),
      );
      const explained = this.#explain(what, jobs, () => lastArrival, unpublished, all);
      // Publishing and explaining end with the collection at the latest; only their failure may come first.
      return await Promise.race([
        collected,
        ...[published, explained].map((each) => each.then(() => collected)),
      ]);
    } finally {
      ended.abort(new Error("the collection is over"));
      collected.catch(() => undefined);
      reporter.waitingNoMore();
    }
  }

  /**
   * Takes rollouts that were trained before out of the stream; none is asked for.
   * @throws {LostRolloutsError} when the stream does not hold them all.
   */
  async recall(what: string, slots: readonly Slot[]): Promise<ScoredRollout[]> {
    const { run, rollouts, inbox, reporter, signal } = this.#deps;
    const text = `the stored rollouts of ${what}`;
    const last = await reporter.untilAvailable({ text, owner: WaitOwner.bus }, () =>
      rollouts.lastSequence(run.runId),
    );
    reporter.waiting({ text, owner: WaitOwner.bus });
    try {
      let missing = inbox.missing(slots).length;
      // Of a run that was resumed, an episode that counts more may follow one that is here.
      while ((missing > 0 || run.resumptions > 0) && inbox.nextSequence <= last) {
        await delay(5, { signal });
        missing = inbox.missing(slots).length;
      }
      if (missing > 0) throw new LostRolloutsError(what, missing, slots.length);
      return await inbox.collect(slots, () => undefined, signal);
    } finally {
      reporter.waitingNoMore();
    }
  }

  /** Waits until the inbox holds what the stream held when the run was taken over. */
  async #readBacklog(): Promise<void> {
    const { run, rollouts, inbox, reporter, logger, signal } = this.#deps;
    const last = await reporter.untilAvailable({ text: "the stream of episodes", owner: WaitOwner.bus }, () =>
      rollouts.lastSequence(run.runId),
    );
    const giveUpAt = performance.now() + CATCH_UP_DEADLINE_MS;
    while (inbox.nextSequence <= last && performance.now() < giveUpAt) await delay(5, { signal });
    if (inbox.nextSequence <= last) {
      logger.warn("publishes before the stream was read to its end", { read: inbox.nextSequence - 1, last });
    }
  }

  /** @param repetition above 0 where the queue has seen these jobs before and is to take them again (G3). */
  async #publishMissing(
    jobs: readonly Job[],
    unpublished: Unpublished,
    signal: AbortSignal,
    repetition = 0,
  ): Promise<void> {
    const { run, inbox, jobs: queue, traces, logger } = this.#deps;
    const missing = new Set(inbox.missing(jobs.map(({ slot }) => slot)).map(slotKey));
    unpublished.count = missing.size;
    const waiting = jobs.filter(({ slot }) => missing.has(slotKey(slot))).values();
    const told = (error: unknown) => {
      unpublished.reason = describeError(error);
    };
    const pacer = new JobPacer({
      waitingJobs: () => retry(() => queue.waitingJobs(), { signal, onRetry: told }),
      onHeld: (count) => {
        unpublished.reason =
          count === undefined ? "" : `${count} jobs of all runs wait for agent-rollout before them`;
      },
      signal,
    });
    const publishInTurn = async (): Promise<void> => {
      for (const job of waiting) {
        await pacer.leave();
        const span = traces.open(run, job);
        const isStored = await retry(
          () => queue.publish(run, job, { repetition, trace: span.context, signal }),
          {
            signal,
            isRetryable: (error) => error instanceof RetryableError,
            onRetry: (error, attempt) => {
              told(error);
              if (attempt === 1) logger.warn("a job waits to be published", { error: unpublished.reason });
            },
          },
        );
        unpublished.count--;
        unpublished.reason = "";
        if (!isStored) span.drop();
      }
    };
    await Promise.all(Array.from({ length: PUBLISH_WINDOW }, publishInTurn));
  }

  /** G4; ends with the signal. @throws {EpisodesFullError} (G6) */
  async #explain(
    what: string,
    jobs: readonly Job[],
    lastArrival: () => number,
    unpublished: Unpublished,
    signal: AbortSignal,
  ): Promise<void> {
    const { run, inbox, pipeline, progress, reporter, logger, fullMs = DEFAULT_FULL_MS } = this.#deps;
    const version = jobs.find(({ scriptedPolicy }) => scriptedPolicy === undefined)?.highestVersion;
    let full: { readonly sinceMs: number; readonly arrival: number } | undefined;
    while (!signal.aborted) {
      await pause(QUIET_MS, signal);
      const arrival = lastArrival();
      const quietMs = performance.now() - arrival;
      if (signal.aborted || quietMs < QUIET_MS) continue;
      try {
        const view = await pipeline.look(run.runId, signal);
        if (signal.aborted || lastArrival() !== arrival) continue;
        const missing = inbox.missing(jobs.map(({ slot }) => slot)).length;
        const total = jobs.length;
        const { neededFrom } = progress;
        const keepsSteps =
          progress.version !== undefined && !isReplayFree(run.config, progress.recovery, progress.version);
        const wanted = { what, missing, total, version, unpublished: unpublished.count };
        const wait = findHoldup({ ...wanted, runId: run.runId, neededFrom, keepsSteps }, view);
        const text = `${wait.text}${heldText(unpublished)}`;
        reporter.waiting({ ...wait, text, sinceMs: Math.round(Date.now() - quietMs) });
        if (view.kind !== "seen" || !view.episodes.isFull) {
          full = undefined;
          continue;
        }
        if (full?.arrival !== arrival) {
          full = { sinceMs: performance.now(), arrival };
          logger.warn("EPISODES is full", { waitingFor: text, owner: wait.owner });
        } else if (keepsSteps && performance.now() - full.sinceMs >= fullMs) {
          throw new EpisodesFullError(what, progress.recovery?.version); // G6
        }
        await dropUnneededEpisodes(this.#deps); // G6
      } catch (error) {
        if (error instanceof EpisodesFullError) throw error;
        if (!signal.aborted) logger.warn("cannot tell what is waited for", { error: describeError(error) });
      }
    }
  }

  /** G3; ends with the signal. */
  async #heal(
    jobs: readonly Job[],
    lastArrival: () => number,
    unpublished: Unpublished,
    signal: AbortSignal,
  ): Promise<void> {
    const { run, pipeline, logger } = this.#deps;
    const silenceMs = (this.#deps.silenceMs ?? DEFAULT_SILENCE_MS) + run.config.rollout.deadlineMs;
    let since = lastArrival();
    let repetition = 0;
    while (!signal.aborted) {
      await pause(since + silenceMs - performance.now(), signal);
      if (signal.aborted) return; // the collection is over
      if (lastArrival() > since) {
        since = lastArrival();
        continue;
      }
      since = performance.now();
      const view = await pipeline.look(run.runId, signal).catch(() => undefined);
      // A queue that has them still is slow or waits for somebody: more of the same would make it longer. A bus that was
      // killed may show jobs that are done; of those nobody takes any.
      if (view?.kind !== "seen" || (view.jobs > 0 && view.jobsPending + view.jobsInWork > 0)) continue;
      logger.warn("no rollout came for long: publishes the missing jobs again", { silenceMs });
      await this.#publishMissing(jobs, unpublished, signal, ++repetition);
    }
  }
}

/** G5 */
function heldText({ count, reason }: Unpublished): string {
  return count === 0 || reason === "" ? "" : `; ${count} jobs are not published yet (${reason})`;
}

/** Slots of a batch: every task with every index, in order. */
export function batchSlots(split: Slot["split"], step: number, taskCount: number, groupSize: number): Slot[] {
  return Array.from({ length: taskCount * groupSize }, (_, i) => ({
    split,
    step,
    task: Math.floor(i / groupSize),
    index: i % groupSize,
  }));
}
