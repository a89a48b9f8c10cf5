/**
 * Manages the runs that this process owns: claims free runs, renews their leases and starts failed ones again.
 *
 * S1: a run has one tenure at a time in this process; its epoch is new each time, so a failed tenure can never write again.
 * S2: leases are renewed by a timer of their own, never by the loop, so no lease expires during a long step.
 * S3: after a failure the run starts again from the last commit, with growing pauses; a failure that repeats without any
 *     progress ends the run as failed. A failure that may pass (bus or database cannot be reached) never does.
 * S4: a run with which several processes in a row died, without any progress, ends as failed.
 * S5: a row that cannot be read as a run ends as failed and does not affect other runs.
 */

import { delay, describeError, RetryableError } from "@hone/core";
import { counterOf, Instrument, type Logger } from "@hone/telemetry";
import type { Admission } from "../admission/admission.ts";
import { OwnershipLostError, RunCancelledError, TrainerStoppingError } from "../errors.ts";
import type { RunLedger } from "../step/ledger.ts";
import { RequestedControl } from "./requested-control.ts";
import { type RunRecord, RunStage } from "./run-record.ts";
import type { BrokenRun, RunRegistry } from "./run-registry.ts";
import { failBrokenRun, failRun, holdTenure, type TenureControl, type TenureDeps } from "./run-tenure.ts";

export interface SupervisorOptions {
  /** Name of this process, the same after a restart: it may claim its own runs at once. */
  readonly owner: string;
  /** Time after which others may claim a run of a dead process. */
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

/** How many times a lease is renewed within its duration. */
const RENEWALS_PER_LEASE = 3;
/** After this many failures without a commit in between the run has failed (S3). */
const MAX_FAILURES = 5;
/** After this many tenures without progress whose processes died the run has failed (S4): more than chance explains. */
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

  /** Claims a run that had failed: its failures are forgotten. */
  takeUp(runId: string): void {
    this.#failures.delete(runId);
    this.wake();
  }

  /** Applies a request to a run that is held here at once; another owner sees it when it next renews its lease. */
  applyControl(run: RunRecord): void {
    const held = this.#held.get(run.runId);
    if (held !== undefined) this.#applyRequests(run.runId, held.control, run);
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
        const claimed = await this.#deps.registry.claim(owner, leaseMs, this.#runsNotToClaim(), (run) =>
          broken.push(run),
        );
        for (const run of claimed) this.#startTenure(run);
        for (const run of broken) this.#endBroken(run);
      } catch (error) {
        this.#deps.logger.warn("could not look for free runs", { error: describeError(error) });
      }
      await Promise.race([this.#woken.promise, this.#pause(this.#untilNextClaimMs())]);
    }
  }

  #runsNotToClaim(): string[] {
    const now = performance.now();
    const resting = [...this.#failures]
      .filter(([, { notBefore }]) => notBefore > now)
      .map(([runId]) => runId);
    return [...this.#held.keys(), ...this.#broken.keys(), ...resting];
  }

  /** Ends a broken row (S5). Where that cannot be published now, the row is claimed again later. */
  #endBroken(run: BrokenRun): void {
    const log = this.#deps.logger.child({ runId: run.runId, epoch: run.epoch });
    log.error("the row of a run is broken: the run is given up", { reason: run.reason });
    const ended = this.#quietly(log, () => failBrokenRun(run, this.#deps.tenure));
    this.#broken.set(
      run.runId,
      ended.finally(() => this.#broken.delete(run.runId)),
    );
  }

  /** The time until another process's lease may be over, or until a pause after a failure is. */
  #untilNextClaimMs(): number {
    const rests = [...this.#failures.values()]
      .map(({ notBefore }) => notBefore - performance.now())
      .filter((ms) => ms > 0);
    return Math.min(this.#options.leaseMs / 2, ...rests);
  }

  async #pause(ms: number): Promise<void> {
    try {
      await delay(ms, { signal: this.#stopping.signal });
    } catch {
      return; // The supervisor stops: the loop checks the signal next.
    }
  }

  #startTenure(run: RunRecord): void {
    const control: TenureControl = {
      requested: new RequestedControl(run),
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
      log.info("took over the run", { stage: run.stage, version: run.version });
      this.#applyRequests(run.runId, control, run);
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

  /** @returns false when the run was refused. A cancelled run is admitted, so that it is ended like any other. */
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
      await this.#quietly(log, () => this.#deps.registry.recordSurvival(run.runId, run.epoch));
    }
    if (isPassing || count < MAX_FAILURES) return;
    await this.#quietly(log, () => failRun(run, this.#deps.tenure, describeError(error)));
    this.#failures.delete(run.runId);
  }

  /** Renews the lease on its own timer (S2). */
  #keepLease(run: RunRecord, control: TenureControl): { stop: () => void } {
    const { leaseMs } = this.#options;
    let isRunning = false;
    const timer = setInterval(async () => {
      if (isRunning) return;
      isRunning = true;
      try {
        const requested = await this.#deps.ledger.renew(run.runId, run.epoch, leaseMs);
        renewals.of({ result: requested === undefined ? "lost" : "ok" }).add();
        if (requested === undefined) control.ending.abort(new OwnershipLostError(run.runId, run.epoch));
        else this.#applyRequests(run.runId, control, requested);
      } catch (error) {
        renewals.of({ result: "failed" }).add();
        // Nobody else can claim the run while the database is away; afterwards the epoch decides.
        this.#deps.logger.warn("could not renew a lease", { runId: run.runId, error: describeError(error) });
      } finally {
        isRunning = false;
      }
    }, leaseMs / RENEWALS_PER_LEASE);
    return { stop: () => clearInterval(timer) };
  }

  #applyRequests(
    runId: string,
    control: TenureControl,
    requested: { isCancelRequested: boolean; isPauseRequested: boolean },
  ): void {
    control.requested.set(requested);
    if (requested.isCancelRequested) control.ending.abort(new RunCancelledError(runId));
  }

  async #quietly(log: Logger, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.warn("could not tidy up after a run", { error: describeError(error) });
    }
  }
}
