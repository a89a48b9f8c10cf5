/**
 * Adds up gradients, computes their norm and updates parameters on several threads.
 *
 * Each parameter is assigned to one thread, and sums over parameters are computed in their order, so the bits are the same on
 * any number of threads.
 *
 * U1  There is one call at a time; every worker with a task answers it.
 * U2  Gradients and their sums are transferred to a worker without copying and come back with its answer; weights and
 *     moments stay in shared memory.
 * U3  If a worker ends unexpectedly, the open call and all later ones fail.
 */
import { Worker } from "node:worker_threads";
import type { AdamWState } from "@hone/checkpoint";
import { endThread } from "@hone/core";
import { type ParameterInfo, releaseValues } from "@hone/nn";
import { UpdateError } from "../errors.ts";
import type { AdamWOptions } from "./adamw.ts";
import { runUpdateTask, type UpdateTask, type Values } from "./update-task.ts";

/** Owner -> worker. */
export type UpdateCall = UpdateTask | { readonly kind: "end" };

/** Worker -> owner, one per task. */
export type UpdateAnswer =
  | { readonly kind: "done"; readonly squares: Readonly<Record<string, number>>; readonly task: UpdateTask }
  | { readonly kind: "error"; readonly message: string };

/** With fewer values, the calling thread would finish before a message reaches another thread. */
const MIN_VALUES_TO_SHARE = 2 ** 21;

interface UpdateWorker {
  readonly thread: Worker;
  open: PromiseWithResolvers<Extract<UpdateAnswer, { kind: "done" }>> | undefined;
}

export class UpdateThreads {
  readonly #threads: number;
  readonly #minValues: number;
  /** Started only when there is work for them; small models never need them. */
  readonly #workers: UpdateWorker[] = [];
  #lost: UpdateError | undefined;

  /** @param threads number of threads that compute, including the calling thread. */
  constructor(threads: number, minValues = MIN_VALUES_TO_SHARE) {
    this.#threads = threads;
    this.#minValues = minValues;
  }

  /** sums += gradients; a gradient without a sum becomes the sum, and the memory of all others is freed. */
  async add(sums: Record<string, Float32Array>, gradients: Record<string, Float32Array>): Promise<void> {
    const added = pick(
      gradients,
      Object.keys(gradients).filter((name) => sums[name] !== undefined),
    );
    await this.#share(added, sums, (names) => ({
      kind: "add",
      sums: pick(sums, names),
      gradients: pick(added, names),
    }));
    for (const [name, gradient] of Object.entries(gradients)) sums[name] ??= gradient;
    releaseValues(added);
  }

  /** Euclidean norm of all gradients together; the sums of squares are added in the order of the record. */
  async norm(gradients: Record<string, Float32Array>): Promise<number> {
    const squares = await this.#share(gradients, {}, (names) => ({
      kind: "squares",
      gradients: pick(gradients, names),
    }));
    return Math.sqrt(Object.keys(gradients).reduce((sum, name) => sum + squares[name]!, 0));
  }

  /** {@link updateAdamW} with weights and state in shared memory. */
  async update(
    parameters: readonly ParameterInfo[],
    weights: Values,
    gradients: Record<string, Float32Array>,
    state: AdamWState,
    options: AdamWOptions,
    gradientFactor = 1,
  ): Promise<void> {
    await this.#share(gradients, {}, (names) => ({
      kind: "update",
      parameters: parameters.filter(({ name }) => names.includes(name)),
      weights: pick(weights, names),
      gradients: pick(gradients, names),
      state: { step: state.step, m: pick(state.m, names), v: pick(state.v, names) },
      options,
      gradientFactor,
    }));
    state.step += 1;
  }

  async close(): Promise<void> {
    this.#lost ??= new UpdateError("its threads are closed");
    const end: UpdateCall = { kind: "end" };
    await Promise.all(this.#workers.map(({ thread }) => endThread(thread, () => thread.postMessage(end))));
  }

  /** Divides the work by parameter, and afterwards puts the transferred arrays back into their records. */
  async #share(
    gradients: Record<string, Float32Array>,
    sums: Record<string, Float32Array>,
    taskOf: (names: readonly string[]) => UpdateTask,
  ): Promise<Record<string, number>> {
    if (this.#lost !== undefined) throw this.#lost;
    const [own = [], ...others] = this.#parts(gradients);
    const answers = others.map((names, i) => this.#runOn(this.#worker(i), taskOf(names)));
    // If the calling thread's own part fails as well, its error is reported; this prevents unhandled rejections.
    for (const answer of answers) answer.catch(() => undefined);
    const squares = runUpdateTask(taskOf(own));
    for (const answer of await Promise.all(answers)) {
      Object.assign(squares, answer.squares);
      Object.assign(gradients, answer.task.gradients); // U2
      if (answer.task.kind === "add") Object.assign(sums, answer.task.sums);
    }
    return squares;
  }

  /** The parameters of each thread. They are assigned from the largest, each to the thread with the fewest values so far. */
  #parts(gradients: Values): string[][] {
    const sizes = Object.entries(gradients).map(([name, { length }]) => ({ name, length }));
    const total = sizes.reduce((sum, { length }) => sum + length, 0);
    const count = total < this.#minValues ? 1 : this.#threads;
    const parts = Array.from({ length: count }, () => ({ names: [] as string[], values: 0 }));
    for (const { name, length } of sizes.sort((a, b) => b.length - a.length)) {
      const least = parts.reduce((a, b) => (b.values < a.values ? b : a));
      least.names.push(name);
      least.values += length;
    }
    return parts.map(({ names }) => names);
  }

  #runOn(worker: UpdateWorker, task: UpdateTask): Promise<Extract<UpdateAnswer, { kind: "done" }>> {
    worker.open = Promise.withResolvers();
    worker.thread.postMessage(task, transferables(task));
    return worker.open.promise;
  }

  #worker(index: number): UpdateWorker {
    const worker = this.#workers[index] ?? this.#start();
    this.#workers[index] = worker;
    return worker;
  }

  #start(): UpdateWorker {
    const thread = new Worker(new URL("./update-worker.ts", import.meta.url));
    const worker: UpdateWorker = { thread, open: undefined };
    thread.on("message", (answer: UpdateAnswer) => {
      if (answer.kind === "done") worker.open?.resolve(answer);
      else worker.open?.reject(new UpdateError(answer.message));
    });
    thread.on("error", (error) => this.#end(String(error)));
    thread.on("exit", (code) => this.#end(`exit code ${code}`));
    return worker;
  }

  /** Fails the open call and all later ones (U3). */
  #end(reason: string): void {
    this.#lost ??= new UpdateError(`a thread ended (${reason})`);
    for (const worker of this.#workers) worker.open?.reject(this.#lost);
  }
}

/** The buffers that are transferred with a task (U2). */
export function transferables(task: UpdateTask): ArrayBuffer[] {
  const handedOver = [task.gradients, task.kind === "add" ? task.sums : {}].flatMap((values) =>
    Object.values(values),
  );
  return handedOver.flatMap(({ buffer }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}

function pick(values: Values, names: readonly string[]): Record<string, Float32Array> {
  return Object.fromEntries(names.map((name) => [name, values[name]!]));
}
