/**
 * Runs microbatches on several threads of one core each: small operators cannot use a second core, small batches can.
 *
 * M1  A worker has one job at a time; jobs are given out in their order as workers become free.
 * M2  Results come back in the order of the jobs, so whoever adds them up does not see which thread was faster.
 * M3  A worker that dies fails every job that is open and all later ones.
 */
import { Worker } from "node:worker_threads";
import type { AdaptedModel, Weights } from "@hone/nn";
import { MicrobatchError, TrainingInputError } from "./errors.ts";
import type { MicrobatchJob, MicrobatchResult, MicrobatchRunnerOptions } from "./microbatch-runner.ts";

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
  weights: Weights | undefined;
  job: PromiseWithResolvers<MicrobatchResult> | undefined;
}

export class MicrobatchPool {
  readonly #workers: PoolWorker[];
  #lost: MicrobatchError | undefined;

  /** @param size number of threads. */
  constructor(model: AdaptedModel, options: MicrobatchRunnerOptions, size: number) {
    const workerData: PoolWorkerData = {
      model,
      options: { ...options, session: { ...options.session, intraOpThreads: 1 } },
    };
    this.#workers = Array.from({ length: size }, () => this.#start(workerData));
  }

  /** Runs the jobs and hands their results over in order; one run at a time. @throws MicrobatchError where one fails. */
  async *run(weights: Weights, jobs: readonly MicrobatchJob[]): AsyncGenerator<MicrobatchResult> {
    requireShared(weights);
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
    }
  }

  async close(): Promise<void> {
    this.#lost ??= new MicrobatchError("the pool is open", "closed");
    await Promise.all(this.#workers.map(({ thread }) => thread.terminate()));
  }

  #start(workerData: PoolWorkerData): PoolWorker {
    const thread = new Worker(new URL("./microbatch-worker.ts", import.meta.url), { workerData });
    const worker: PoolWorker = { thread, weights: undefined, job: undefined };
    thread.on("message", (answer: PoolAnswer) => {
      const { job } = worker;
      worker.job = undefined;
      if (answer.kind === "result") job?.resolve(answer.result);
      else job?.reject(new MicrobatchError("it computes", answer.message));
    });
    thread.on("error", (error) => this.#end(String(error)));
    thread.on("exit", (code) => this.#end(`exit code ${code}`));
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
