/**
 * Collects the rollouts of a list of slots: publishes the jobs whose rollouts are missing and waits for their scored episodes.
 *
 * G1: Episodes that the stream already holds are read before any job is published, so a restart repeats no rollout.
 * G2: Publishing is idempotent (job-issuer.ts), and if a slot has two episodes, the first one counts.
 * G3: If no rollout arrives for a long time and the queue has none of the run's jobs any more, the missing jobs are published
 *     again under new names, except of those rollouts that have ended and wait for rewards. This recovers from a queue or a
 *     stream that lost messages.
 * G4: If no rollout arrives for a short time, the state of the bus is examined, and the run's status says who must act. While
 *     rollouts arrive, nothing is examined.
 * G5: While jobs cannot be published, because the queue is full or jobs of other runs come first, the run's status says so.
 * G6: While the stream of episodes is full, episodes that the run no longer needs are dropped again and again, because other
 *     readers may have needed them until now. If that is not enough and the run keeps episodes for a replay of steps, this
 *     tenure of the run ends: the next one replays the steps and no longer needs those episodes.
 * G7: If more jobs are published than rollouts are wanted, those that agent-rollout has not taken when enough have arrived are
 *     removed. Rollouts that are being played end as stale once the next version is published; nothing waits for them.
 * G8: If the other groups are kept for later steps, no job is removed, and jobs are published on while nothing is waited for.
 */

import { delay, describeError, pause, type Slot, slotKey } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { EpisodesFullError, LostRolloutsError } from "../errors.ts";
import { FirstGroups, type WantedGroups } from "../groups/first-groups.ts";
import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunProgress, RunRecord } from "../run/run-record.ts";
import { dropUnneededEpisodes } from "../state/episode-room.ts";
import { isReplayFree } from "../state/state-cadence.ts";
import type { Pipeline } from "./find-cause-of-wait.ts";
import { findCauseOfWait } from "./find-cause-of-wait.ts";
import { JobIssuer, type Unpublished } from "./job-issuer.ts";
import type { Job, JobQueue } from "./jobs.ts";
import type { RolloutInbox } from "./rollout-inbox.ts";
import type { RolloutTraces } from "./rollout-traces.ts";
import type { ScoredRollout, ScoredRollouts } from "./scored-rollout.ts";

/** If the stream is not read to its end after this time, jobs are published anyway; G2 makes that harmless. */
const CATCH_UP_DEADLINE_MS = 10_000;
/** Missing jobs are published again when no rollout has arrived for this time plus the deadline of a rollout (G3). */
const DEFAULT_SILENCE_MS = 120_000;
const REOPEN_DELAY_MS = 500;
/** The cause is looked for when no rollout has arrived for this time (G4); most rollouts take less. */
const QUIET_MS = 3_000;
/** How long to wait for room in a full stream (G6); the judge and the tracer empty their queues within this time. */
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
  /** Missing jobs are published again when no rollout arrives for this time plus a rollout's deadline. @default 120_000 */
  readonly silenceMs?: number;
  /** How long the stream of episodes may stay full before steps are replayed to make room. @default 20_000 */
  readonly fullMs?: number;
}

export class RolloutGatherer {
  readonly #deps: GathererDeps;
  readonly #issuer: JobIssuer;
  #backlogRead: Promise<void> | undefined;
  /** How often missing jobs were published again (G3). */
  #repetition = 0;

  constructor(deps: GathererDeps) {
    this.#deps = deps;
    this.#issuer = new JobIssuer(deps);
  }

  /** Reads the run's scored episodes from the stream into the inbox until the signal aborts. */
  async read(): Promise<void> {
    const { run, rollouts, inbox, traces, logger, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        for await (const scored of rollouts.read(run.runId, inbox.nextSequence, signal)) {
          if (inbox.offer(scored)) traces.scored(scored);
          this.#issuer.arrived(scored.slot);
        }
      } catch (error) {
        if (signal.aborted) return;
        logger.warn("reading scored rollouts is interrupted", { error: describeError(error) });
        await delay(REOPEN_DELAY_MS);
      }
    }
  }

  /**
   * Gathers the rollouts of `jobs`, in the order of the jobs.
   * @param what what needs the rollouts, such as "step 3"; it appears in the run's status.
   * @param wanted if present, only the first groups that are complete are returned; the other jobs are dropped (G7) or kept (G8).
   */
  async gather(
    what: string,
    jobs: readonly Job[],
    onProgress: (done: number, total: number) => void,
    wanted?: WantedGroups,
  ): Promise<ScoredRollout[]> {
    const { inbox, reporter, signal } = this.#deps;
    const slots = jobs.map(({ slot }) => slot);
    const total = wanted === undefined ? jobs.length : wanted.groups * wanted.rollouts;
    await this.catchUp(); // G1
    const ended = new AbortController();
    const all = AbortSignal.any([signal, ended.signal]);
    const sinceMs = Date.now();
    let lastArrival = performance.now();
    const isKept = wanted?.keepsOthers === true;
    const unpublished = isKept ? this.#issuer.unissued : { count: 0, reason: "" };
    const onArrival = (arrived: number) => {
      lastArrival = performance.now();
      const done = Math.min(arrived, total);
      const text = `${total - done} of ${total} rollouts of ${what}${heldText(unpublished)}`;
      reporter.waiting({ text, owner: WaitOwner.agentRollout, key: what, sinceMs });
      onProgress(done, total);
    };
    const collected =
      wanted === undefined
        ? inbox.collect(slots, onArrival, all)
        : inbox.collectFirst(slots, new FirstGroups(slots, wanted), onArrival, all);
    try {
      const publishing = isKept ? this.#issuer.issue(jobs) : this.#issuer.publish(jobs, unpublished, all);
      const published = publishing.then(() => this.#heal(jobs, () => lastArrival, unpublished, all));
      const explained = this.#explain(what, jobs, () => lastArrival, unpublished, all);
      // Publishing and explaining end no later than the collection, so if one of them settles the race, it has failed.
      const rollouts = await Promise.race([
        collected,
        ...[published, explained].map((each) => each.then(() => collected)),
      ]);
      if (wanted !== undefined && !isKept) {
        ended.abort(new Error("the collection is over"));
        await this.#dropJobs(slots);
      }
      return rollouts;
    } finally {
      ended.abort(new Error("the collection is over"));
      collected.catch(() => undefined);
      reporter.clearWait();
    }
  }

  /** Waits until everything was read that the stream held when this process began to read it. */
  catchUp(): Promise<void> {
    this.#backlogRead ??= this.#readBacklog();
    return this.#backlogRead;
  }

  /**
   * Takes rollouts that were trained on before from the stream again, without publishing any job.
   * @throws {LostRolloutsError} when the stream does not hold all of them.
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
      // If the run was resumed, a later episode of the stream may replace one that has arrived.
      while ((missing > 0 || run.resumptions > 0) && inbox.nextSequence <= last) {
        await delay(5, { signal });
        missing = inbox.missing(slots).length;
      }
      if (missing > 0) throw new LostRolloutsError(what, missing, slots.length);
      return await inbox.collect(slots, () => undefined, signal);
    } finally {
      reporter.clearWait();
    }
  }

  /** Forgets rollouts that nothing waits for any more; the inbox drops them as soon as they are settled. */
  giveUp(slots: readonly Slot[]): void {
    this.#deps.inbox.prune();
    this.#deps.traces.cancelled(slots);
  }

  /** Removes the run's waiting jobs, and ends the root spans of rollouts that are no longer needed (G7). */
  async #dropJobs(slots: readonly Slot[]): Promise<void> {
    const { run, jobs, traces, reporter } = this.#deps;
    await reporter.untilAvailable({ text: "the queue of jobs", owner: WaitOwner.bus }, () =>
      jobs.purge(run.runId),
    );
    this.#issuer.forget(slots);
    traces.cancelled(slots);
  }

  /** Waits until the inbox has read everything that the stream holds at the time of the call. */
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

  /** G4; ends with the signal. @throws {EpisodesFullError} (G6) */
  async #explain(
    what: string,
    jobs: readonly Job[],
    lastArrival: () => number,
    unpublished: Unpublished,
    signal: AbortSignal,
  ): Promise<void> {
    const { run, inbox, pipeline, progress, reporter, logger, fullMs = DEFAULT_FULL_MS } = this.#deps;
    const version = jobs.find(({ scriptedPolicy }) => scriptedPolicy === undefined)?.lowestVersion;
    let full: { readonly sinceMs: number; readonly arrival: number } | undefined;
    while (!signal.aborted) {
      await pause(QUIET_MS, signal);
      const arrival = lastArrival();
      const quietMs = performance.now() - arrival;
      if (signal.aborted || quietMs < QUIET_MS) continue;
      try {
        const view = await pipeline.look(run.runId, signal);
        if (signal.aborted || lastArrival() !== arrival) continue;
        const slots = inbox.missing(jobs.map(({ slot }) => slot));
        const missing = slots.length;
        const keys = new Set(slots.map(slotKey));
        const open = view.kind === "seen" ? view.open.filter(({ slot }) => keys.has(slot)) : [];
        const total = jobs.length;
        const { neededFrom } = progress;
        const keepsSteps =
          progress.version !== undefined && !isReplayFree(run.config, progress.recovery, progress.version);
        const wanted = { what, missing, total, version, unpublished: unpublished.count, open };
        const wait = findCauseOfWait({ ...wanted, runId: run.runId, neededFrom, keepsSteps }, view);
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
    while (!signal.aborted) {
      await pause(since + silenceMs - performance.now(), signal);
      if (signal.aborted) return; // the collection is over
      if (lastArrival() > since) {
        since = lastArrival();
        continue;
      }
      since = performance.now();
      const view = await pipeline.look(run.runId, signal).catch(() => undefined);
      // If the queue still has the jobs, it is slow or waits for a service, and publishing them again would only make it
      // longer. After the bus was killed it may still list jobs that are done; those are neither waiting nor being worked on.
      if (view?.kind !== "seen" || (view.jobs > 0 && view.jobsPending + view.jobsInWork > 0)) continue;
      const open = new Set(view.open.map(({ slot }) => slot));
      const lost = jobs.filter(({ slot }) => !open.has(slotKey(slot)));
      if (this.#deps.inbox.missing(lost.map(({ slot }) => slot)).length === 0) continue;
      logger.warn("no rollout came for long: publishes the missing jobs again", { silenceMs });
      await this.#issuer.publish(lost, unpublished, signal, ++this.#repetition);
    }
  }
}

/** G5 */
function heldText({ count, reason }: Unpublished): string {
  return count === 0 || reason === "" ? "" : `; ${count} jobs are not published yet (${reason})`;
}
