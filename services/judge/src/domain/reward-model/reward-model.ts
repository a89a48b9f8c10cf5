/**
 * A classifier in a thread of its own.
 *
 * R1: conversations are judged one after the other.
 * R2: when the thread dies, all waiting and all later requests fail.
 */

import { Worker } from "node:worker_threads";
import { describeError, TerminalError } from "@hone/core";
import type { FromRewardWorker, ToRewardWorker } from "./messages.ts";

interface Waiting {
  readonly resolve: (outputs: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

export class RewardModel {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #failure: Error | undefined;
  #lastId = 0;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (message: FromRewardWorker) => this.#onMessage(message));
    worker.on("error", (error) => this.#fail(describeError(error)));
    worker.on("exit", (code) => this.#fail(`its thread ended with code ${code}`));
    // An idle model does not keep the process alive.
    worker.unref();
  }

  /** @param file path of model.onnx. @throws {TerminalError} when it is not a classifier of conversations. */
  static async open(file: string): Promise<RewardModel> {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: file });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    worker.once("error", reject);
    worker.once("message", (message: FromRewardWorker) => {
      if (message.kind === "ready") resolve();
      else reject(new Error(message.kind === "unusable" ? message.reason : message.kind));
    });
    try {
      await promise;
      return new RewardModel(worker);
    } catch (cause) {
      await worker.terminate();
      throw new TerminalError(
        "REWARD_MODEL",
        `the reward model ${file} is not an ONNX classifier that can be used`,
        { cause },
      );
    }
  }

  /** The model's outputs for a conversation. @throws {TerminalError} when it fails. */
  outputsOf(tokenIds: readonly number[]): Promise<readonly number[]> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<readonly number[]>();
    this.#waiting.set(id, { resolve, reject });
    this.#worker.ref();
    this.#worker.postMessage({ id, tokenIds } satisfies ToRewardWorker);
    return promise.finally(() => {
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#worker.unref();
    });
  }

  #onMessage(message: FromRewardWorker): void {
    if (message.kind === "outputs") this.#waiting.get(message.id)?.resolve(message.outputs);
    if (message.kind === "failed") this.#waiting.get(message.id)?.reject(failure(message.reason));
  }

  /** R2 */
  #fail(reason: string): void {
    this.#failure ??= failure(reason);
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
  }
}

function failure(reason: string): TerminalError {
  return new TerminalError("REWARD_MODEL", `the reward model failed: ${reason}`);
}
