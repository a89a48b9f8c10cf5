/**
 * Runs microbatches on several threads of one core each: small operators cannot use a second core, small batches can.
 *
 * M1  A worker has one pass at a time; passes are given out in their order as workers become free.
 * M2  Results come back in the order of the passes, so whoever adds them up does not see which thread was faster.
 * M3  A worker that dies fails every pass that is open and all later ones.
 * M4  Workers that had nothing to do for a while end and give their memory back, about 40 MiB each; the next passes start
 *     new ones, which takes a few tenths of a second. A run waits for its rollouts longer than it computes.
 */
import { Worker } from "node:worker_threads";
import type { AdaptedModel, Weights } from "@hone/nn";
import { MicrobatchError, TrainingInputError } from "../errors.ts";
import type { PassResult, PassRunnerOptions } from "./pass-runner.ts";
import type { Pass } from "./plan-passes.ts";

/** What a worker is made with. */
export interface PoolWorkerData {
  readonly model: AdaptedModel;
  readonly options: PassRunnerOptions;
}

/** Owner -> worker. Weights lie in shared memory and are sent once. */
export type PoolCall =
  | { readonly kind: "weights"; readonly weights: Weights }
  | { readonly kind: "run"; readonly pass: Pass };

/** Worker -> owner, one per pass. */
export type PoolAnswer =
  | { readonly kind: "result"; readonly result: PassResult }
  | { readonly kind: "error"; readonly message: string };

interface PoolWorker {
  readonly thread: Worker;
  /** It ends because it is not needed (M4). */
  isReleased: boolean;
  weights: Weights | undefined;
  pass: PromiseWithResolvers<PassResult> | undefined;
}

/** Hundreds of times what starting them again takes. */
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
   * @param idleMs time without a pass after which they end (M4).
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
    // At once: the first passes come soon, and do not wait for them.
    this.#workers = this.#startAll();
    this.#restIn();
  }

  /** Threads that there are now. */
  get threadCount(): number {
    return this.#workers.length;
  }

  /** Runs the passes and hands their results over in order; one run at a time. @throws MicrobatchError where one fails. */
  async *run(weights: Weights, passes: readonly Pass[]): AsyncGenerator<PassResult> {
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
    // A failed pass is reported where its turn comes; until then its rejection is not unhandled.
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
    await Promise.all([this.#ending, ...this.#workers.map(({ thread }) => thread.terminate())]);
  }

  /** M4 */
  #restIn(): void {
    if (this.#lost !== undefined) return;
    this.#idle = setTimeout(() => {
      const workers = this.#workers;
      this.#workers = [];
      for (const worker of workers) worker.isReleased = true;
      this.#ending = Promise.all([this.#ending, ...workers.map(({ thread }) => thread.terminate())]);
    }, this.#idleMs);
    this.#idle.unref();
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

  #runOn(worker: PoolWorker, weights: Weights, pass: Pass): Promise<PassResult> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const post = (call: PoolCall) => worker.thread.postMessage(call);
    if (worker.weights !== weights) {
      worker.weights = weights;
      post({ kind: "weights", weights });
    }
    worker.pass = Promise.withResolvers();
    post({ kind: "run", pass });
    return worker.pass.promise;
  }

  /** M3 */
  #end(reason: string): void {
    this.#lost ??= new MicrobatchError(`a thread ended (${reason})`);
    for (const worker of this.#workers) worker.pass?.reject(this.#lost);
  }
}

function requireShared(weights: Weights): void {
  for (const [name, values] of Object.entries(weights)) {
    if (!(values.buffer instanceof SharedArrayBuffer)) {
      throw new TrainingInputError(
        `${name} does not lie in shared memory, so several threads cannot train it`,
      );
    }
  }
}
