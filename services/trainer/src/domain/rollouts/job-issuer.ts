/**
 * Publishes the jobs of a run whose rollouts are missing, as fast as the queue and the run's limits allow.
 *
 * J1: Publishing is idempotent: the queue refuses a slot that it received recently.
 * J2: While jobs cannot be published, because the queue is full, jobs of other runs come first or a limit is reached, the reason
 *     is kept for the run's status.
 * J3: Each part of a mix that has a limit of its own is published apart from the others, so that its jobs hold up no other part's.
 *     Of such a part count the jobs that this process published and whose rollouts have not arrived. The process that takes a run
 *     over publishes them again, as they are the first ones that are missing, and so counts them too.
 * J4: With limits a job may wait long to be published; one that nothing needs any more is left out then.
 * J5: If jobs of later steps are published on while nothing is waited for, each is begun once.
 */

import { maxConcurrencyOfPart, taskPartsOf } from "@hone/config";
import { describeError, RetryableError, retry, type Slot, slotKey } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { RunRecord } from "../run/run-record.ts";
import { JobLimit } from "./job-limit.ts";
import { JobPacer } from "./job-pacer.ts";
import type { Job, JobQueue } from "./jobs.ts";
import type { RolloutInbox } from "./rollout-inbox.ts";
import type { RolloutTraces } from "./rollout-traces.ts";

/** Number of jobs that are published at the same time; their acknowledgements come back in batches. */
const PUBLISH_WINDOW = 256;

export interface JobIssuerDeps {
  readonly run: RunRecord;
  readonly jobs: JobQueue;
  readonly inbox: RolloutInbox;
  readonly traces: RolloutTraces;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** The number of jobs that are not published yet, and the reason why they must wait; "" = they need not wait (J2). */
export interface Unpublished {
  count: number;
  reason: string;
}

/** A limit on the jobs that are out, and how the run's status names it. */
interface NamedLimit {
  readonly limit: JobLimit;
  readonly reason: string;
}

/** A part of a mix with a limit of its own. */
interface LimitedPart extends NamedLimit {
  /** The slots of the jobs that are out. */
  readonly out: Set<string>;
}

export class JobIssuer {
  /** Jobs of {@link issue} that are not published yet. */
  readonly unissued: Unpublished = { count: 0, reason: "" };
  readonly #deps: JobIssuerDeps;
  /** Undefined = the run file sets no `rollout.maxConcurrency`. */
  readonly #limit: NamedLimit | undefined;
  /** By name. */
  readonly #parts: ReadonlyMap<string, LimitedPart>;
  /** The jobs that {@link issue} has begun to publish and that are still needed, and its end for each part with a limit (J5, J3). */
  #issued: ReadonlySet<string> = new Set();
  readonly #issuing = new Map<LimitedPart | undefined, Promise<void>>();

  constructor(deps: JobIssuerDeps) {
    this.#deps = deps;
    const { run, jobs, signal } = deps;
    const most = run.config.rollout.maxConcurrency;
    const jobsInQueue = () => retry(() => jobs.jobsOf(run.runId), { signal });
    this.#limit =
      most === undefined
        ? undefined
        : {
            limit: new JobLimit({ most, jobsInQueue, signal }),
            reason: `rollout.maxConcurrency allows ${most} at once`,
          };
    this.#parts = limitedParts(run, signal);
  }

  /** Says that a rollout of the run has arrived. */
  arrived(slot: Slot): void {
    for (const { out, limit } of this.#parts.values()) if (out.delete(slotKey(slot))) limit.arrived();
    this.#limit?.limit.arrived();
  }

  /** Says that nothing waits for these rollouts any more, which may end without arriving. */
  forget(slots: readonly Slot[]): void {
    for (const { out } of this.#parts.values()) for (const slot of slots) out.delete(slotKey(slot));
  }

  /**
   * Publishes those of the jobs whose rollouts are missing; resolves when all are published.
   * @param repetition above 0 if the queue received these jobs before and must accept them again.
   */
  async publish(
    jobs: readonly Job[],
    unpublished: Unpublished,
    signal: AbortSignal,
    repetition = 0,
  ): Promise<void> {
    const missing = this.#missing(jobs);
    // Those that were lost are not out any more, or they would wait for themselves.
    this.forget(missing.map(({ slot }) => slot));
    unpublished.count += missing.length;
    const lanes = this.#lanesOf(missing);
    await Promise.all(
      Array.from(lanes, ([part, lane]) => this.#publishLane(part, lane, unpublished, { signal, repetition })),
    );
  }

  /** Publishes those of the jobs that it has not begun to publish; they are published on while nothing waits for them (J5). */
  async issue(jobs: readonly Job[]): Promise<void> {
    const { signal } = this.#deps;
    const fresh = jobs.filter(({ slot }) => !this.#issued.has(slotKey(slot)));
    const issued = new Set(jobs.map(({ slot }) => slotKey(slot)));
    this.#issued = issued;
    // A job that was given up may end without arriving.
    for (const { out } of this.#parts.values()) for (const key of out) if (!issued.has(key)) out.delete(key);
    for (const [part, lane] of this.#lanesOf(fresh)) {
      this.unissued.count += lane.length;
      const earlier = this.#issuing.get(part) ?? Promise.resolve();
      const issuing = earlier.then(() => {
        const missing = this.#missing(lane);
        this.unissued.count -= lane.length - missing.length;
        return this.#publishLane(part, missing, this.unissued, { signal, repetition: 0 });
      });
      // Whoever waits for the jobs meets the failure; it must not end the process before.
      issuing.catch(() => undefined);
      this.#issuing.set(part, issuing);
    }
    await Promise.all(this.#issuing.values());
  }

  #missing(jobs: readonly Job[]): Job[] {
    const { inbox } = this.#deps;
    const missing = new Set(inbox.missing(jobs.map(({ slot }) => slot)).map(slotKey));
    return jobs.filter(({ slot }) => missing.has(slotKey(slot)));
  }

  /** The jobs of each part that has a limit, and all others under `undefined` (J3). */
  #lanesOf(jobs: readonly Job[]): Map<LimitedPart | undefined, Job[]> {
    return Map.groupBy(jobs, ({ task }) => this.#parts.get(task.part));
  }

  /** Publishes jobs that are counted as unpublished. */
  async #publishLane(
    part: LimitedPart | undefined,
    jobs: readonly Job[],
    unpublished: Unpublished,
    { signal, repetition }: { readonly signal: AbortSignal; readonly repetition: number },
  ): Promise<void> {
    const { run, jobs: queue, traces, logger } = this.#deps;
    const waiting = jobs.values();
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
    // The part's own limit first: who waits for it takes no place of the run's.
    const limits = [part, this.#limit].filter((each) => each !== undefined);
    const publishInTurn = async (): Promise<void> => {
      for (const job of waiting) {
        await pacer.waitUntilAllowed();
        using entered = new DisposableStack();
        for (const { limit, reason } of limits) {
          await limit.enter(signal, () => {
            unpublished.reason = reason;
          });
          entered.defer(() => limit.published());
        }
        if (limits.length > 0 && !this.#isNeeded(job.slot, unpublished)) {
          unpublished.count--;
          continue; // J4
        }
        part?.out.add(slotKey(job.slot));
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

  /** Whether a rollout that was missing when its job began to wait is still needed (J4). */
  #isNeeded(slot: Slot, unpublished: Unpublished): boolean {
    const isForgotten = unpublished === this.unissued && !this.#issued.has(slotKey(slot));
    return !isForgotten && this.#deps.inbox.missing([slot]).length > 0;
  }
}

function limitedParts({ config }: RunRecord, signal: AbortSignal): Map<string, LimitedPart> {
  const parts = new Map<string, LimitedPart>();
  for (const { name } of taskPartsOf(config)) {
    const most = maxConcurrencyOfPart(config, name);
    if (most === undefined || parts.has(name)) continue;
    const out = new Set<string>();
    parts.set(name, {
      out,
      limit: new JobLimit({ most, jobsInQueue: async () => out.size, signal }),
      reason: `maxConcurrency of the part ${name} allows ${most} at once`,
    });
  }
  return parts;
}
