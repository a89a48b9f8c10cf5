/**
 * Runs untrusted Python in a pool of child processes.
 *
 * S1: a process runs the code of one session and is ended afterwards, so code cannot affect the code of other sessions.
 * S2: there are at most `maxProcesses`. When all places are taken, runs wait, first come, first served; an idle session gives up
 *     its process to a run that waits.
 * S3: when a session has lost its process, its earlier cells are run again before the next one, without their output.
 * S4: a process is started ahead, so that code rarely waits for one. It has the packages of the code that ran last.
 * S5: code whose process was ended by a signal runs again, at most twice; if it happens a third time, it counts as the code's
 *     fault.
 */

import { pause, raceAbortable } from "@hone/core";
import { defaultProcesses } from "./default-processes.ts";
import { PackageError, SandboxClosedError, SandboxMissingError, SandboxUnavailableError } from "./errors.ts";
import { WheelSet } from "./packages/wheel-set.ts";
import { PythonProcess, type RunLimits, type RunResult } from "./python-process.ts";
import { ownSnapshots, type Snapshots } from "./snapshot/snapshots.ts";
import { kernelWalls } from "./walls/kernel-walls.ts";

export interface PythonSandboxOptions {
  /** @default one per core, see default-processes.ts */
  readonly maxProcesses?: number;
  /** Memory limit of Python. @default 256 MiB */
  readonly maxMemoryBytes?: number;
  /** Longest wait for a place. @default 600_000 */
  readonly maxWaitMs?: number;
  /** Called each time that code runs again because a signal ended its process (S5). */
  readonly onRepeat?: () => void;
  /** Called after each successful wait for a process, with its duration. */
  readonly onWait?: (ms: number) => void;
  /** The snapshots from which processes start. @default those that this process shares */
  readonly snapshots?: Snapshots;
}

/** Wraps the wait for a process: it must call `wait`, and may stop clocks meanwhile. */
export type AroundWait = <T>(wait: () => Promise<T>) => Promise<T>;

/** Runs several pieces of code that share their variables. */
export interface PythonSession {
  /**
   * @throws {SandboxUnavailableError} when no process can be started or becomes free.
   * @throws {SandboxMissingError} when this machine has no runtime for such code.
   * @throws {PackageError} when a package of the session cannot be imported.
   * @throws the signal's reason when it aborts, and what the limits' `answerCall` throws.
   */
  run(code: string, limits: RunLimits, signal: AbortSignal, aroundWait?: AroundWait): Promise<RunResult>;
  close(): void;
}

const DEFAULT_MAX_MEMORY_BYTES = 256 * 1024 * 1024;
const DEFAULT_MAX_WAIT_MS = 600_000;
/** S5 */
const MAX_REPEATS = 2;
/** Tries to start a process; after that, the failure is reported. */
const START_TRIES = 3;
const START_PAUSE_MS = 200;

export class PythonSandbox {
  readonly #options: Required<PythonSandboxOptions>;
  /** A process that was started ahead (S4); it holds a place. */
  #spare: { readonly wheels: WheelSet; readonly starting: Promise<PythonProcess> } | undefined;
  /** Sessions that have a process and do not run, oldest first (S2). */
  readonly #idle = new Set<Session>();
  readonly #waiting: (() => void)[] = [];
  #numPlaces = 0;
  #isClosed = false;

  constructor(options: PythonSandboxOptions = {}) {
    this.#options = {
      maxProcesses: options.maxProcesses ?? defaultProcesses(),
      maxMemoryBytes: options.maxMemoryBytes ?? DEFAULT_MAX_MEMORY_BYTES,
      maxWaitMs: options.maxWaitMs ?? DEFAULT_MAX_WAIT_MS,
      onRepeat: options.onRepeat ?? (() => undefined),
      onWait: options.onWait ?? (() => undefined),
      snapshots: options.snapshots ?? ownSnapshots(),
    };
  }

  /** Number of places taken by running code, by sessions, and by the process that was started ahead. */
  get numPlaces(): number {
    return this.#numPlaces;
  }

  /** The limit of places. */
  get maxProcesses(): number {
    return this.#options.maxProcesses;
  }

  /** Number of runs that wait for a place. */
  get numWaiting(): number {
    return this.#waiting.length;
  }

  /** Runs code in a new session. @throws as {@link PythonSession.run}. */
  async run(
    code: string,
    limits: RunLimits,
    signal: AbortSignal,
    aroundWait?: AroundWait,
  ): Promise<RunResult> {
    const session = this.open();
    try {
      return await session.run(code, limits, signal, aroundWait);
    } finally {
      session.close();
    }
  }

  /** @param wheels packages that the session's code can import. @default the standard library alone */
  open(wheels: WheelSet = WheelSet.none): PythonSession {
    return new Session({
      take: async (signal) => {
        const since = performance.now();
        const python = await this.#take(wheels, signal);
        this.#options.onWait(performance.now() - since);
        return python;
      },
      release: (python) => this.#release(python, wheels),
      rest: (session) => {
        this.#idle.add(session);
        this.#evict();
      },
      wake: (session) => this.#idle.delete(session),
      onRepeat: this.#options.onRepeat,
    });
  }

  /** Ends every process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const session of [...this.#idle]) session.close();
    const spare = this.#spare;
    this.#spare = undefined;
    await spare?.starting.then(
      (python) => this.#release(python, spare.wheels),
      () => undefined,
    );
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #take(wheels: WheelSet, signal: AbortSignal): Promise<PythonProcess> {
    const spare = this.#spare;
    if (spare !== undefined) {
      this.#spare = undefined;
      const giveBack = () =>
        void spare.starting.then((late) => this.#release(late, wheels)).catch(() => undefined);
      if (spare.wheels.key !== wheels.key) {
        // It has other packages: its place is what can be used of it.
        giveBack();
      } else {
        const python = await raceAbortable(spare.starting, signal).catch((error: unknown) => {
          // The run no longer waits; the process gives its place back once it has started.
          giveBack();
          signal.throwIfAborted();
          throw error;
        });
        if (python.isAlive) {
          this.#startAhead(wheels);
          return python;
        }
        this.#release(python, wheels);
      }
    }
    await this.#place(signal);
    try {
      const python = await this.#start(wheels, signal);
      this.#startAhead(wheels);
      return python;
    } catch (error) {
      this.#freePlace();
      throw error;
    }
  }

  /** Waits for a place and takes it (S2). */
  async #place(signal: AbortSignal): Promise<void> {
    const until = performance.now() + this.#options.maxWaitMs;
    while (true) {
      if (this.#isClosed) throw new SandboxClosedError();
      signal.throwIfAborted();
      if (this.#numPlaces < this.#options.maxProcesses) break;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      this.#evict();
      const remainingMs = until - performance.now();
      const over = new AbortController();
      try {
        await raceAbortable(Promise.race([promise, pause(remainingMs, over.signal)]), signal);
      } finally {
        over.abort();
        const at = this.#waiting.indexOf(resolve);
        if (at >= 0) this.#waiting.splice(at, 1);
      }
      if (performance.now() >= until) {
        throw new SandboxUnavailableError(
          `none of its ${this.#options.maxProcesses} processes became free in time`,
          `waited ${this.#options.maxWaitMs} ms`,
        );
      }
    }
    this.#numPlaces++;
  }

  async #start(wheels: WheelSet, signal: AbortSignal): Promise<PythonProcess> {
    const { snapshots, maxMemoryBytes } = this.#options;
    for (let attempt = 1; ; attempt++) {
      let snapshot: Uint8Array | undefined;
      try {
        // The first time, the kernel's restrictions are probed meanwhile; each start needs the result.
        [snapshot] = await Promise.all([snapshots.take(maxMemoryBytes, wheels), kernelWalls()]);
        return await PythonProcess.start(snapshot, maxMemoryBytes, wheels);
      } catch (error) {
        // The snapshot may be the cause, so it is dropped.
        if (snapshot !== undefined) await snapshots.drop(maxMemoryBytes, snapshot, wheels);
        const isFinal = error instanceof SandboxMissingError || error instanceof PackageError;
        if (attempt >= START_TRIES || this.#isClosed || isFinal) throw error;
        await pause(START_PAUSE_MS * attempt, signal);
        signal.throwIfAborted();
      }
    }
  }

  /** S4: starts a process ahead, unless a run waits for the place. */
  #startAhead(wheels: WheelSet): void {
    const { maxProcesses } = this.#options;
    if (this.#isClosed || this.#spare !== undefined || this.#waiting.length > 0) return;
    if (this.#numPlaces >= maxProcesses) return;
    this.#numPlaces++;
    const starting = this.#start(wheels, new AbortController().signal);
    const spare = { wheels, starting };
    this.#spare = spare;
    starting.catch(() => {
      if (this.#spare === spare) this.#spare = undefined;
      this.#freePlace();
    });
  }

  /** S2: takes the process of the session that has been idle for longest, if a run waits. */
  #evict(): void {
    if (this.#waiting.length === 0) return;
    const [oldest] = this.#idle;
    if (oldest === undefined) return;
    this.#idle.delete(oldest);
    oldest.releaseProcess();
  }

  #release(python: PythonProcess, wheels: WheelSet): void {
    python.end(); // S1
    // A run that waits must get the place; a process started ahead would take it first.
    const isWanted = this.#waiting.length > 0;
    this.#freePlace();
    if (!isWanted) this.#startAhead(wheels);
  }

  #freePlace(): void {
    this.#numPlaces--;
    this.#waiting.shift()?.();
  }
}

/** What sessions need from their sandbox. */
interface Pool {
  take(signal: AbortSignal): Promise<PythonProcess>;
  release(python: PythonProcess): void;
  rest(session: Session): void;
  wake(session: Session): void;
  onRepeat(): void;
}

class Session implements PythonSession {
  readonly #pool: Pool;
  /** Code that ran to its end (S3). */
  readonly #cells: string[] = [];
  #process: PythonProcess | undefined;
  #isClosed = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async run(
    code: string,
    limits: RunLimits,
    signal: AbortSignal,
    aroundWait: AroundWait = (wait) => wait(),
  ): Promise<RunResult> {
    this.#pool.wake(this);
    const runOnce = () => this.#runOnce(code, limits, signal, aroundWait);
    let result = await runOnce();
    // S5: another process may have ended it, for example because the machine was out of memory.
    for (let repeat = 1; repeat <= MAX_REPEATS; repeat++) {
      if (result.kind !== "crashed" || !result.isBySignal) break;
      this.#pool.onRepeat();
      result = await runOnce();
    }
    // Code that raised an exception is kept too: it may have set variables before.
    if (result.kind === "finished") this.#cells.push(code);
    if (this.#isClosed) this.releaseProcess();
    else if (this.#process !== undefined) this.#pool.rest(this);
    return result;
  }

  close(): void {
    this.#isClosed = true;
    this.#pool.wake(this);
    this.releaseProcess();
  }

  /** Gives its process back; the state can be restored (S3). */
  releaseProcess(): void {
    const python = this.#process;
    this.#process = undefined;
    if (python !== undefined) this.#pool.release(python);
  }

  async #runOnce(
    code: string,
    limits: RunLimits,
    signal: AbortSignal,
    aroundWait: AroundWait,
  ): Promise<RunResult> {
    const isNew = this.#process === undefined;
    this.#process ??= await aroundWait(() => this.#pool.take(signal));
    // S3
    for (const cell of isNew ? this.#cells : []) {
      const result = await this.#step(cell, limits, signal);
      if (result.kind !== "finished") return result;
    }
    return this.#step(code, limits, signal);
  }

  async #step(code: string, limits: RunLimits, signal: AbortSignal): Promise<RunResult> {
    const python = this.#process;
    if (python === undefined) throw new SandboxClosedError();
    try {
      const result = await python.run(code, limits, signal);
      if (result.kind !== "finished") this.releaseProcess();
      return result;
    } catch (error) {
      this.releaseProcess();
      throw error;
    }
  }
}
