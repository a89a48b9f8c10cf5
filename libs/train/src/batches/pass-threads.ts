/**
 * Runs microbatches on several threads of one core each. Small operators cannot use a second core, but several microbatches
 * can run at the same time.
 *
 * M1  A worker has one pass at a time; passes are assigned in their order as workers become free.
 * M2  Results are returned in the order of the passes, so their sum does not depend on which thread was faster.
 * M3  If a worker ends unexpectedly, all open passes and all later ones fail.
 * M4  Workers that are idle for some time end and free their memory, about 40 MiB each. The next passes start new workers,
 *     which takes a few tenths of a second. This is worthwhile because a run waits for its rollouts longer than it computes.
 */
import { Worker } from "node:worker_threads";
import { endThread } from "@hone/core";
import type { AdaptedModel } from "@hone/nn";
import { MicrobatchError, TrainingInputError } from "../errors.ts";
import type { PassResult, PassRunnerOptions, PassWeights } from "./pass-runner.ts";
import type { Pass } from "./plan-passes.ts";

/** The data with which a worker is started. */
export interface PoolWorkerData {
  readonly model: AdaptedModel;
  readonly options: PassRunnerOptions;
}

/** Owner -> worker. Weights are in shared memory and are sent once. */
export type PoolCall =
  | { readonly kind: "weights"; readonly weights: PassWeights }
  | { readonly kind: "run"; readonly pass: Pass }
  | { readonly kind: "end" };

/** Worker -> owner, one per pass. */
export type PoolAnswer =
  | { readonly kind: "result"; readonly result: PassResult }
  | { readonly kind: "error"; readonly message: string };

interface PoolWorker {
  readonly thread: Worker;
  /** Whether it is being ended because it is idle (M4). */
  isReleased: boolean;
  /** Those that it was sent last. */
  weights: PassWeights["weights"] | undefined;
  pass: PromiseWithResolvers<PassResult> | undefined;
}

/** About a hundred times as long as starting the threads again takes. */
const DEFAULT_IDLE_MS = 30_000;

export class PassThreads {
  readonly #workerData: PoolWorkerData;
  readonly #size: number;
  readonly #idleMs: number;
  #workers: PoolWorker[];
  #idle: NodeJS.Timeout | undefined;
  #ending: Promise<unknown> = Promise.resolve();
  #lost: MicrobatchError | undefined;

  /**
   * @param size number of threads.
   * @param idleMs time without a pass after which the threads end (M4).
   */
  constructor(
    model: AdaptedModel,
    options: PassRunnerOptions,
    size: number,
    idleMs: number = DEFAULT_IDLE_MS,
  ) {
    this.#workerData = {
      model,
      options: { ...options, session: { ...options.session, intraOpThreads: 1 } },
    };
    this.#size = size;
    this.#idleMs = idleMs;
    // Threads are started at once, so that the first passes, which come soon, need not wait for them.
    this.#workers = this.#startAll();
    this.#restIn();
  }

  /** Current number of threads. */
  get threadCount(): number {
    return this.#workers.length;
  }

  /** Runs the passes and yields their results in order; one call at a time. @throws MicrobatchError if a pass fails. */
  async *run(weights: PassWeights, passes: readonly Pass[]): AsyncGenerator<PassResult> {
    requireShared(weights);
    if (this.#lost !== undefined) throw this.#lost;
    clearTimeout(this.#idle);
    if (this.#workers.length === 0) this.#workers = this.#startAll(); // M4
    const results = passes.map(() => Promise.withResolvers<PassResult>());
    let next = 0;
    const work = async (worker: PoolWorker) => {
      while (next < passes.length) {
        const at = next++; // M1
        await this.#runOn(worker, weights, passes[at]!).then(results[at]!.resolve, results[at]!.reject);
      }
    };
    const working = Promise.all(this.#workers.map(work));
    // A failed pass is reported when its turn comes; until then this prevents an unhandled rejection.
    for (const { promise } of results) promise.catch(() => undefined);
    try {
      for (const { promise } of results) yield await promise; // M2
    } finally {
      next = passes.length;
      await working;
      this.#restIn();
    }
  }

  async close(): Promise<void> {
    this.#lost ??= new MicrobatchError("its threads are closed");
    clearTimeout(this.#idle);
    await this.#endAll(this.#workers);
  }

  /** Ends the workers after the idle time (M4). */
  #restIn(): void {
    if (this.#lost !== undefined) return;
    this.#idle = setTimeout(() => {
      const workers = this.#workers;
      this.#workers = [];
      for (const worker of workers) worker.isReleased = true;
      void this.#endAll(workers);
    }, this.#idleMs);
    this.#idle.unref();
  }

  #endAll(workers: readonly PoolWorker[]): Promise<unknown> {
    const ends = workers.map(({ thread }) => endThread(thread, () => post(thread, { kind: "end" })));
    this.#ending = Promise.all([this.#ending, ...ends]);
    return this.#ending;
  }

  #startAll(): PoolWorker[] {
    return Array.from({ length: this.#size }, () => this.#start());
  }

  #start(): PoolWorker {
    const thread = new Worker(new URL("./pass-worker.ts", import.meta.url), {
      workerData: this.#workerData,
    });
    const worker: PoolWorker = { thread, isReleased: false, weights: undefined, pass: undefined };
    thread.on("message", (answer: PoolAnswer) => {
      const { pass } = worker;
      worker.pass = undefined;
      if (answer.kind === "result") pass?.resolve(answer.result);
      else pass?.reject(new MicrobatchError(answer.message));
    });
    thread.on("error", (error) => this.#end(String(error)));
    thread.on("exit", (code) => {
      if (!worker.isReleased) this.#end(`exit code ${code}`);
    });
    return worker;
  }

  #runOn(worker: PoolWorker, weights: PassWeights, pass: Pass): Promise<PassResult> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const { thread } = worker;
    if (worker.weights !== weights.weights) {
      worker.weights = weights.weights;
      post(thread, { kind: "weights", weights });
    }
    worker.pass = Promise.withResolvers();
    post(thread, { kind: "run", pass });
    return worker.pass.promise;
  }

  /** Fails all open and later passes (M3). */
  #end(reason: string): void {
    this.#lost ??= new MicrobatchError(`a thread ended (${reason})`);
    for (const worker of this.#workers) worker.pass?.reject(this.#lost);
  }
}

function post(thread: Worker, call: PoolCall): void {
  thread.postMessage(call);
}

function requireShared({ weights, quantized }: PassWeights): void {
  for (const [name, values] of Object.entries({ ...weights, ...quantized })) {
    if (!(values.buffer instanceof SharedArrayBuffer)) {
      throw new TrainingInputError(
        `${name} does not lie in shared memory, so several threads cannot train it`,
      );
    }
  }
}
