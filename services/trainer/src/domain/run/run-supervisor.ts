/**
 * Which runs this process owns: takes what is free, prolongs its leases, starts again what failed.
 *
 * S1: one tenure per run in this process; its epoch is new each time, so a failed tenure can never write again.
 * S2: leases are renewed by a timer of their own, never by the loop, so a long step costs no lease.
 * S3: a failure of the run is tried again from the last commit, with growing pauses; one that repeats without any
 *     progress ends the run as failed. A failure that passes by itself (bus or database away) never does.
 * S4: a run with which process after process died, without any progress, ends as failed.
 * S5: a row that holds no run ends as failed, by itself; the others are none of its business.
 */

import { delay, describeError, RetryableError } from "@hone/core";
import { counterOf, Instrument, type Logger } from "@hone/telemetry";
import type { Admission } from "../admission/admission.ts";
import { OwnershipLostError, RunCancelledError, TrainerStoppingError } from "../errors.ts";
import type { RunLedger } from "../step/ledger.ts";
import { type RunRecord, RunStage } from "./run-record.ts";
import type { BrokenRun, RunRegistry } from "./run-registry.ts";
import { failBrokenRun, failRun, holdTenure, type TenureControl, type TenureDeps } from "./run-tenure.ts";
import { WishBoard } from "./run-wishes.ts";

export interface SupervisorOptions {
  /** Names this process over restarts: its own runs are free to it at once. */
  readonly owner: string;
  /** A run of a dead process is free after this. */
  readonly leaseMs: number;
  /** Pause after a first failure; it doubles each time. @default 250 */
  readonly minPauseMs?: number;
}

export interface SupervisorDeps {
  readonly registry: RunRegistry;
  readonly ledger: RunLedger;
  readonly admission: Admission;
  readonly tenure: TenureDeps;
  readonly logger: Logger;
}

/** A lease is renewed this often within its time. */
const RENEWALS_PER_LEASE = 3;
/** Failures without a commit in between after which the run has failed (S3). */
const MAX_FAILURES = 5;
/** Tenures without progress that no process outlived after which the run has failed (S4): no series of accidents. */
export const MAX_TENURES = 10;
const DEFAULT_MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 15_000;

const renewals = counterOf(Instrument.leaseRenewals);

interface Held {
  readonly control: TenureControl;
  readonly done: Promise<void>;
}

interface Failures {
  count: number;
  version: number | undefined;
  notBefore: number;
}

export class RunSupervisor {
  readonly #options: SupervisorOptions;
  readonly #deps: SupervisorDeps;
  readonly #held = new Map<string, Held>();
  /** Broken rows that are being ended (S5). */
  readonly #broken = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, Failures>();
  readonly #stopping = new AbortController();
  #woken = Promise.withResolvers<void>();
  #watching: Promise<void> | undefined;

  constructor(options: SupervisorOptions, deps: SupervisorDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** Runs that this process works on. */
  get heldRuns(): string[] {
    return [...this.#held.keys()];
  }

  start(): void {
    this.#watching ??= this.#watch();
  }

  /** Looks for free runs now. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Takes up a run that had failed: its failures are forgotten. */
  takeUp(runId: string): void {
    this.#failures.delete(runId);
    this.wake();
  }

  /** Applies a wish at once to a run that is held here; elsewhere the owner learns of it with its next renewal. */
  applyWish(run: RunRecord): void {
    const held = this.#held.get(run.runId);
    if (held !== undefined) this.#heed(run.runId, held.control, run);
  }

  /** Ends every tenure and gives the leases back. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort(new TrainerStoppingError());
    this.wake();
    await this.#watching;
    await Promise.all([...[...this.#held.values()].map(({ done }) => done), ...this.#broken.values()]);
  }

  async #watch(): Promise<void> {
    const { owner, leaseMs } = this.#options;
    while (!this.#stopping.signal.aborted) {
      this.#woken = Promise.withResolvers<void>();
      const broken: BrokenRun[] = [];
      try {
        const claimed = await this.#deps.registry.claim(owner, leaseMs, this.#notToClaim(), (run) =>
          broken.push(run),
        );
        for (const run of claimed) this.#hold(run);
        for (const run of broken) this.#endBroken(run);
      } catch (error) {
        this.#deps.logger.warn("cannot look for runs", { error: describeError(error) });
      }
      await Promise.race([this.#woken.promise, this.#pause(this.#nextLook())]);
    }
  }

  #notToClaim(): string[] {
    const now = performance.now();
    const resting = [...this.#failures]
      .filter(([, { notBefore }]) => notBefore > now)
      .map(([runId]) => runId);
    return [...this.#held.keys(), ...this.#broken.keys(), ...resting];
  }

  /** S5. One that cannot be told of now is claimed again later. */
  #endBroken(run: BrokenRun): void {
    const log = this.#deps.logger.child({ runId: run.runId, epoch: run.epoch });
    log.error("the row of a run is broken: the run is given up", { reason: run.reason });
    const ended = this.#quietly(log, () => failBrokenRun(run, this.#deps.tenure));
    this.#broken.set(
      run.runId,
      ended.finally(() => this.#broken.delete(run.runId)),
    );
  }

  /** Until the next lease of another process may be over, or a rest here is. */
  #nextLook(): number {
    const rests = [...this.#failures.values()]
      .map(({ notBefore }) => notBefore - performance.now())
      .filter((ms) => ms > 0);
    return Math.min(this.#options.leaseMs / 2, ...rests);
  }

  async #pause(ms: number): Promise<void> {
    try {
      await delay(ms, { signal: this.#stopping.signal });
    } catch {
      return; // stopping: the loop looks at the signal next
    }
  }

  #hold(run: RunRecord): void {
    const control: TenureControl = {
      wishes: new WishBoard(run),
      ending: new AbortController(),
      stopping: this.#stopping.signal,
    };
    const done = this.#tenure(run, control).finally(() => {
      this.#held.delete(run.runId);
      this.wake();
    });
    this.#held.set(run.runId, { control, done });
  }

  async #tenure(run: RunRecord, control: TenureControl): Promise<void> {
    const { registry, tenure, logger } = this.#deps;
    const log = logger.child({ runId: run.runId, epoch: run.epoch });
    const renewal = this.#keepLease(run, control);
    try {
      log.info("owns the run", { stage: run.stage, version: run.version });
      this.#heed(run.runId, control, run);
      if (run.tenures > MAX_TENURES) {
        const reason = `run ${run.runId} is given up: ${run.tenures - 1} trainers in a row died with it before the next version was committed`;
        log.error("the run is given up", { reason });
        await failRun(run, tenure, reason);
        return;
      }
      if (run.stage === RunStage.admitting && !(await this.#isAdmitted(run, control))) return;
      const ending = await holdTenure(run, tenure, control);
      this.#failures.delete(run.runId);
      log.info("the run is over", { ending });
    } catch (error) {
      await this.#afterFailure(run, error, log);
    } finally {
      renewal.stop();
      if (control.stopping.aborted) await this.#quietly(log, () => registry.release(run.runId, run.epoch));
    }
  }

  /** @returns false when the run was refused. A cancelled one passes, to be ended like any other. */
  async #isAdmitted(run: RunRecord, control: TenureControl): Promise<boolean> {
    const signal = AbortSignal.any([control.ending.signal, control.stopping]);
    try {
      return await this.#deps.admission.admit(run, signal);
    } catch (error) {
      if (signal.reason instanceof RunCancelledError) return true;
      throw error;
    }
  }

  async #afterFailure(run: RunRecord, error: unknown, log: Logger): Promise<void> {
    if (error instanceof TrainerStoppingError) return;
    if (error instanceof OwnershipLostError) {
      log.warn("another process owns the run now");
      return;
    }
    const isPassing = error instanceof RetryableError;
    const known = this.#failures.get(run.runId);
    const hasProgressed = known === undefined || known.version !== run.version;
    const count = (hasProgressed ? 0 : known.count) + 1;
    const { minPauseMs = DEFAULT_MIN_PAUSE_MS } = this.#options;
    const notBefore = performance.now() + Math.min(MAX_PAUSE_MS, minPauseMs * 2 ** (count - 1));
    this.#failures.set(run.runId, { count, version: run.version, notBefore });
    log.error("the run failed and is tried again", { count, error });
    if (run.tenures <= MAX_TENURES) {
      await this.#quietly(log, () => this.#deps.registry.outlive(run.runId, run.epoch));
    }
    if (isPassing || count < MAX_FAILURES) return;
    await this.#quietly(log, () => failRun(run, this.#deps.tenure, describeError(error)));
    this.#failures.delete(run.runId);
  }

  /** S2 */
  #keepLease(run: RunRecord, control: TenureControl): { stop: () => void } {
    const { leaseMs } = this.#options;
    let isRunning = false;
    const timer = setInterval(async () => {
      if (isRunning) return;
      isRunning = true;
      try {
        const wishes = await this.#deps.ledger.renew(run.runId, run.epoch, leaseMs);
        renewals.of({ result: wishes === undefined ? "lost" : "ok" }).add();
        if (wishes === undefined) control.ending.abort(new OwnershipLostError(run.runId, run.epoch));
        else this.#heed(run.runId, control, wishes);
      } catch (error) {
        renewals.of({ result: "failed" }).add();
        // Nobody else can take the run while the database is away; afterwards the epoch decides.
        this.#deps.logger.warn("cannot renew a lease", { runId: run.runId, error: describeError(error) });
      } finally {
        isRunning = false;
      }
    }, leaseMs / RENEWALS_PER_LEASE);
    return { stop: () => clearInterval(timer) };
  }

  #heed(
    runId: string,
    control: TenureControl,
    wishes: { isCancelRequested: boolean; isPauseRequested: boolean },
  ): void {
    control.wishes.set(wishes);
    if (wishes.isCancelRequested) control.ending.abort(new RunCancelledError(runId));
  }

  async #quietly(log: Logger, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.warn("could not tidy up after a run", { error: describeError(error) });
    }
  }
}
