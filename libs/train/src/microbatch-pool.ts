/**
 * Runs microbatches on several threads of one core each: small operators cannot use a second core, small batches can.
 *
 * M1  A worker has one job at a time; jobs are given out in their order as workers become free.
 * M2  Results come back in the order of the jobs, so whoever adds them up does not see which thread was faster.
 * M3  A worker that dies fails every job that is open and all later ones.
 * M4  Workers that had nothing to do for a while end and give their memory back, about 40 MiB each; the next jobs start
 *     new ones, which takes a few tenths of a second. A run waits for its rollouts longer than it computes.
 */
import { Worker } from "node:worker_threads";
import type { AdaptedModel, Weights } from "@hone/nn";
import { MicrobatchError, TrainingInputError } from "./errors.ts";
import type { MicrobatchJob } from "./microbatch-jobs.ts";
import type { MicrobatchResult, MicrobatchRunnerOptions } from "./microbatch-runner.ts";

/** What a worker is made with. */
export interface PoolWorkerData {
  readonly model: AdaptedModel;
  readonly options: MicrobatchRunnerOptions;
}

/** Owner -> worker. Weights lie in shared memory and are sent once. */
export type PoolCall =
  | { readonly kind: "weights"; readonly weights: Weights }
  | { readonly kind: "run"; readonly job: MicrobatchJob };

/** Worker -> owner, one per job. */
export type PoolAnswer =
  | { readonly kind: "result"; readonly result: MicrobatchResult }
  | { readonly kind: "error"; readonly message: string };

interface PoolWorker {
  readonly thread: Worker;
  /** It ends because it is not needed (M4). */
  isReleased: boolean;
  weights: Weights | undefined;
  job: PromiseWithResolvers<MicrobatchResult> | undefined;
}

/** Hundreds of times what starting them again takes. */
const DEFAULT_IDLE_MS = 30_000;

export class MicrobatchPool {
  readonly #workerData: PoolWorkerData;
  readonly #size: number;
  readonly #idleMs: number;
  #workers: PoolWorker[];
  #idle: NodeJS.Timeout | undefined;
  #ending: Promise<unknown> = Promise.resolve();
  #lost: MicrobatchError | undefined;

  /**
   * @param size number of threads.
   * @param idleMs time without a job after which they end (M4).
   */
  constructor(
    model: AdaptedModel,
    options: MicrobatchRunnerOptions,
    size: number,
    idleMs: number = DEFAULT_IDLE_MS,
  ) {
    this.#workerData = {
      model,
      options: { ...options, session: { ...options.session, intraOpThreads: 1 } },
    };
    this.#size = size;
    this.#idleMs = idleMs;
    // At once: the first jobs come soon, and do not wait for them.
    this.#workers = this.#startAll();
    this.#restIn();
  }

  /** Threads that there are now. */
  get threadCount(): number {
    return this.#workers.length;
  }

  /** Runs the jobs and hands their results over in order; one run at a time. @throws MicrobatchError where one fails. */
  async *run(weights: Weights, jobs: readonly MicrobatchJob[]): AsyncGenerator<MicrobatchResult> {
    requireShared(weights);
    if (this.#lost !== undefined) throw this.#lost;
    clearTimeout(this.#idle);
    if (this.#workers.length === 0) this.#workers = this.#startAll(); // M4
    const results = jobs.map(() => Promise.withResolvers<MicrobatchResult>());
    let next = 0;
    const work = async (worker: PoolWorker) => {
      while (next < jobs.length) {
        const at = next++; // M1
        await this.#runOn(worker, weights, jobs[at]!).then(results[at]!.resolve, results[at]!.reject);
      }
    };
    const working = Promise.all(this.#workers.map(work));
    // A failed job is reported where its turn comes; until then its rejection is not unhandled.
    for (const { promise } of results) promise.catch(() => undefined);
    try {
      for (const { promise } of results) yield await promise; // M2
    } finally {
      next = jobs.length;
      await working;
      this.#restIn();
    }
  }

  async close(): Promise<void> {
    this.#lost ??= new MicrobatchError("the pool is open", "closed");
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
    const thread = new Worker(new URL("./microbatch-worker.ts", import.meta.url), {
      workerData: this.#workerData,
    });
    const worker: PoolWorker = { thread, isReleased: false, weights: undefined, job: undefined };
    thread.on("message", (answer: PoolAnswer) => {
      const { job } = worker;
      worker.job = undefined;
      if (answer.kind === "result") job?.resolve(answer.result);
      else job?.reject(new MicrobatchError("it computes", answer.message));
    });
    thread.on("error", (error) => this.#end(String(error)));
    thread.on("exit", (code) => {
      if (!worker.isReleased) this.#end(`exit code ${code}`);
    });
    return worker;
  }

  #runOn(worker: PoolWorker, weights: Weights, job: MicrobatchJob): Promise<MicrobatchResult> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const post = (call: PoolCall) => worker.thread.postMessage(call);
    if (worker.weights !== weights) {
      worker.weights = weights;
      post({ kind: "weights", weights });
    }
    worker.job = Promise.withResolvers();
    post({ kind: "run", job });
    return worker.job.promise;
  }

  /** M3 */
  #end(reason: string): void {
    this.#lost ??= new MicrobatchError("its thread is alive", reason);
    for (const worker of this.#workers) worker.job?.reject(this.#lost);
  }
}

function requireShared(weights: Weights): void {
  for (const [name, values] of Object.entries(weights)) {
    if (!(values.buffer instanceof SharedArrayBuffer)) {
      throw new TrainingInputError("train on several threads", "weights lie in shared memory", name);
    }
  }
}
