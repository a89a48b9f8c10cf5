/**
 * Runs Python that nobody trusts, in a pool of child processes.
 *
 * S1: a process runs the code of one session and is ended afterwards: nothing that code does reaches other code.
 * S2: at most `maxProcesses` exist. Who finds no place waits, first come, first served; a session that keeps its state but does
 *     not run gives up its process to one that waits.
 * S3: a session whose process is gone has its earlier cells run again before the next one, without their output.
 * S4: a process is started ahead, so that code rarely waits for one.
 * S5: code whose process was ended by a signal runs again, twice at most; the third time it was the code.
 */

import { pause, raceAbortable } from "@hone/core";
import { defaultProcesses } from "./default-processes.ts";
import { SandboxClosedError, SandboxMissingError, SandboxUnavailableError } from "./errors.ts";
import { PythonProcess, type RunLimits, type RunResult } from "./python-process.ts";
import { ownSnapshots, type Snapshots } from "./snapshot/snapshots.ts";
import { kernelWalls } from "./walls/kernel-walls.ts";

export interface PythonSandboxOptions {
  /** @default as many as cores, see default-processes.ts */
  readonly maxProcesses?: number;
  /** Memory limit of Python. @default 256 MiB */
  readonly maxMemoryBytes?: number;
  /** Longest wait for a place. @default 600_000 */
  readonly maxWaitMs?: number;
  /** Told each time that code runs again as a signal ended its process (S5). */
  readonly onRepeat?: () => void;
  /** Told how long each wait for a process took that ended with one. */
  readonly onWait?: (ms: number) => void;
  /** What processes start from. @default those of this whole process */
  readonly snapshots?: Snapshots;
}

/** Told of the wait for a process: calls it, and may stop clocks meanwhile. */
export type AroundWait = <T>(wait: () => Promise<T>) => Promise<T>;

/** Code that shares its names with what ran before in the session. */
export interface PythonSession {
  /**
   * @throws {SandboxUnavailableError} when no process can be had.
   * @throws {SandboxMissingError} where this machine has no runtime for such code.
   * @throws the signal's reason when it aborts, and what the limits' `answerCall` throws.
   */
  run(code: string, limits: RunLimits, signal: AbortSignal, aroundWait?: AroundWait): Promise<RunResult>;
  close(): void;
}

const DEFAULT_MAX_MEMORY_BYTES = 256 * 1024 * 1024;
const DEFAULT_MAX_WAIT_MS = 600_000;
/** S5 */
const MAX_REPEATS = 2;
/** Tries to start a process; what fails then is the machine. */
const START_TRIES = 3;
const START_PAUSE_MS = 200;

export class PythonSandbox {
  readonly #options: Required<PythonSandboxOptions>;
  /** Started ahead (S4); holds a place. */
  #spare: Promise<PythonProcess> | undefined;
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

  /** Places that are taken: by code that runs, by sessions, by the process started ahead. */
  get numPlaces(): number {
    return this.#numPlaces;
  }

  /** Most places. */
  get maxProcesses(): number {
    return this.#options.maxProcesses;
  }

  /** Runs that wait for a place now. */
  get numWaiting(): number {
    return this.#waiting.length;
  }

  /** Runs code on its own. @throws as {@link PythonSession.run}. */
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

  open(): PythonSession {
    return new Session({
      take: async (signal) => {
        const since = performance.now();
        const python = await this.#take(signal);
        this.#options.onWait(performance.now() - since);
        return python;
      },
      giveBack: (python) => this.#giveBack(python),
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
    await spare?.then(
      (python) => this.#giveBack(python),
      () => undefined,
    );
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #take(signal: AbortSignal): Promise<PythonProcess> {
    const spare = this.#spare;
    if (spare !== undefined) {
      this.#spare = undefined;
      const python = await raceAbortable(spare, signal).catch((error: unknown) => {
        // Nobody waits for it any more; it gives its place back when it is there.
        void spare.then((late) => this.#giveBack(late)).catch(() => undefined);
        signal.throwIfAborted();
        throw error;
      });
      if (python.isAlive) {
        this.#startAhead();
        return python;
      }
      this.#giveBack(python);
    }
    await this.#place(signal);
    try {
      const python = await this.#start(signal);
      this.#startAhead();
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

  async #start(signal: AbortSignal): Promise<PythonProcess> {
    const { snapshots, maxMemoryBytes } = this.#options;
    for (let attempt = 1; ; attempt++) {
      let snapshot: Uint8Array | undefined;
      try {
        // The walls are tried out meanwhile, the first time; each start needs to know of them.
        [snapshot] = await Promise.all([snapshots.take(maxMemoryBytes), kernelWalls()]);
        return await PythonProcess.start(snapshot, maxMemoryBytes);
      } catch (error) {
        // Perhaps it is the snapshot.
        if (snapshot !== undefined) await snapshots.drop(maxMemoryBytes, snapshot);
        if (attempt >= START_TRIES || this.#isClosed || error instanceof SandboxMissingError) throw error;
        await pause(START_PAUSE_MS * attempt, signal);
        signal.throwIfAborted();
      }
    }
  }

  /** S4: only where nobody waits for the place. */
  #startAhead(): void {
    const { maxProcesses } = this.#options;
    if (this.#isClosed || this.#spare !== undefined || this.#waiting.length > 0) return;
    if (this.#numPlaces >= maxProcesses) return;
    this.#numPlaces++;
    const starting = this.#start(new AbortController().signal);
    this.#spare = starting;
    starting.catch(() => {
      if (this.#spare === starting) this.#spare = undefined;
      this.#freePlace();
    });
  }

  /** S2 */
  #evict(): void {
    if (this.#waiting.length === 0) return;
    const [oldest] = this.#idle;
    if (oldest === undefined) return;
    this.#idle.delete(oldest);
    oldest.letGo();
  }

  #giveBack(python: PythonProcess): void {
    python.end(); // S1
    // Who waited takes the place when its turn comes; a process started ahead would be there before it.
    const isWanted = this.#waiting.length > 0;
    this.#freePlace();
    if (!isWanted) this.#startAhead();
  }

  #freePlace(): void {
    this.#numPlaces--;
    this.#waiting.shift()?.();
  }
}

/** What sessions need of their sandbox. */
interface Pool {
  take(signal: AbortSignal): Promise<PythonProcess>;
  giveBack(python: PythonProcess): void;
  rest(session: Session): void;
  wake(session: Session): void;
  onRepeat(): void;
}

class Session implements PythonSession {
  readonly #pool: Pool;
  /** Code that came to its end (S3). */
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
    // Somebody else may have ended the process: the machine's memory is not the code's to answer for. S5
    for (let repeat = 1; repeat <= MAX_REPEATS; repeat++) {
      if (result.kind !== "crashed" || !result.isBySignal) break;
      this.#pool.onRepeat();
      result = await runOnce();
    }
    // What failed half-way has left its names as well.
    if (result.kind === "finished") this.#cells.push(code);
    if (this.#isClosed) this.letGo();
    else if (this.#process !== undefined) this.#pool.rest(this);
    return result;
  }

  close(): void {
    this.#isClosed = true;
    this.#pool.wake(this);
    this.letGo();
  }

  /** Gives its process back; the state can be made again (S3). */
  letGo(): void {
    const python = this.#process;
    this.#process = undefined;
    if (python !== undefined) this.#pool.giveBack(python);
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
      if (result.kind !== "finished") this.letGo();
      return result;
    } catch (error) {
      this.letGo();
      throw error;
    }
  }
}
