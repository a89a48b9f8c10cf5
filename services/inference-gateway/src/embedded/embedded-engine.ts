/**
 * The embedded engine: implements the port by means of a worker thread.
 *
 * E1: every pending call settles with its answer, with the failure of the thread, or by the sweep after its deadline.
 * E2: after close, or a failure of the thread, every call is refused. The thread is not started again here;
 *     the owner of the process decides what to do (`onFailure`).
 */

import { Worker } from "node:worker_threads";
import { endThread } from "@hone/core";
import { checkRequest } from "../domain/check-request.ts";
import { EngineFailedError, InvalidRequestError } from "../domain/errors.ts";
import { countEngineStep } from "../domain/generation-metrics.ts";
import type {
  EngineCapacity,
  EngineGeneration,
  GenerateOptions,
  GenerateRequest,
  InferenceEngine,
  LoadedModel,
  LoadPolicyOptions,
  PolicySource,
} from "../domain/inference-engine.ts";
import type { EngineWorkerData, WeightReading } from "./engine-worker.ts";
import {
  decodeError,
  type FromWorker,
  type SubmittedRequest,
  sharedClock,
  type ToWorker,
  type WireEvent,
} from "./messages.ts";

export interface EmbeddedEngineOptions {
  /** Sequences that run at once. @default 256 */
  readonly maxSequences?: number;
  /** Further requests that wait; more are refused. @default 1_024 */
  readonly maxWaiting?: number;
  /** Most tokens computed in one step, which limits its memory besides weights and K/V. @default 4_096 */
  readonly maxStepTokens?: number;
  /** Most milliseconds of a step for prompts, which limits how long others wait for a long prompt. @default 2_000 */
  readonly maxStepMs?: number;
  /** Memory for K/V of each loaded version; never more than all sequences need at full length. @default 256 MiB */
  readonly maxCacheBytes?: number;
  /** Threads that share an operator. @default 0, which depends on the size of the model */
  readonly intraOpThreads?: number;
  /**
   * How large models read their float32 weights. With `packed` a sample is the same bit by bit, whatever else runs at the same
   * time and however its context was built. With `measured`, weights are read as they lie where the machine is faster so.
   * @default packed
   */
  readonly weights?: WeightReading;
  /** Called once, when the thread has failed and the engine cannot be used any more. */
  readonly onFailure?: (error: EngineFailedError) => void;
}

/** Measured by bench/run-cost.ts on one core, in microseconds. Wrong values make it slower, but do not change results. */
export const RUN_COST = { perRun: 400, perContextRow: 0.19, perAttention: 0.04, maxContextRows: 16_384 };
/** The thread itself ends sequences at their deadline. The sweep ends them only when the thread hangs. */
const SWEEP_GRACE_MS = 5_000;
const SWEEP_EVERY_MS = 1_000;
/** How long close() waits for the thread. */
const CLOSE_GRACE_MS = 5_000;

interface PendingGeneration {
  readonly resolve: (result: EngineGeneration) => void;
  readonly reject: (error: Error) => void;
  readonly onTokens: GenerateOptions["onTokens"];
  readonly sweptAt: number;
  readonly deadlineMs: number;
}

interface PendingCall {
  readonly onProgress: LoadPolicyOptions["onProgress"];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class EmbeddedEngine implements InferenceEngine {
  readonly #worker: Worker;
  readonly #maxSequences: number;
  readonly #maxWaiting: number;
  readonly #onFailure: ((error: EngineFailedError) => void) | undefined;
  readonly #generations = new Map<string, PendingGeneration>();
  readonly #calls = new Map<number, PendingCall>();
  readonly #sweeper: NodeJS.Timeout;
  #models: readonly LoadedModel[] = [];
  #outbox: SubmittedRequest[] = [];
  #calledTimes = 0;
  #failure: EngineFailedError | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: EmbeddedEngineOptions = {}) {
    const {
      maxSequences = 256,
      maxWaiting = 1_024,
      maxStepTokens = 4_096,
      maxStepMs = 2_000,
      maxCacheBytes = 256 * 2 ** 20,
      intraOpThreads = 0,
      weights = "packed",
    } = options;
    this.#maxSequences = maxSequences;
    this.#maxWaiting = maxWaiting;
    this.#onFailure = options.onFailure;
    const workerData: EngineWorkerData = {
      core: { maxSequences, maxWaiting, maxStepTokens, maxStepMs, runCost: RUN_COST },
      runner: {
        maxCacheBytes,
        maxSequences,
        intraOpThreads,
      },
      weights,
    };
    this.#worker = new Worker(new URL("./engine-worker.ts", import.meta.url), { workerData });
    this.#worker.on("message", (message: FromWorker) => this.#receive(message));
    this.#worker.on("error", (cause) =>
      this.#fail(new EngineFailedError("The engine thread failed", { cause })),
    );
    this.#worker.on("exit", (code) => {
      const ended =
        this.#closing === undefined
          ? `The engine thread ended unexpectedly with exit code ${code}`
          : "The engine was closed";
      this.#fail(new EngineFailedError(ended));
    });
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_EVERY_MS);
    this.#sweeper.unref();
  }

  async generate(request: GenerateRequest, options: GenerateOptions = {}): Promise<EngineGeneration> {
    checkRequest(request);
    this.#checkUsable();
    if (this.#generations.has(request.id)) {
      throw new InvalidRequestError("id", request.id, "must be unique among the calls in flight");
    }
    const { signal, onTokens } = options;
    const submittedAt = sharedClock();
    const { promise, resolve, reject } = Promise.withResolvers<EngineGeneration>();
    const sweptAt = submittedAt + request.deadlineMs + SWEEP_GRACE_MS;
    this.#generations.set(request.id, { resolve, reject, onTokens, sweptAt, deadlineMs: request.deadlineMs });
    this.#submit({
      request: { ...request, promptIds: Int32Array.from(request.promptIds) },
      isStreaming: onTokens !== undefined,
      submittedAt,
    });
    const onAbort = () => this.abort(request.id);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  loadPolicy(source: PolicySource, { onProgress }: LoadPolicyOptions = {}): Promise<void> {
    return this.#call((call) => ({ kind: "load", call, source }), onProgress);
  }

  unload(model: string): Promise<void> {
    return this.#call((call) => ({ kind: "unload", call, model }));
  }

  abort(id: string): void {
    if (!this.#generations.has(id) || this.#failure !== undefined) return;
    this.#flush();
    this.#post({ kind: "abort", ids: [id] });
  }

  capacity(): EngineCapacity {
    const running = this.#models.reduce((sum, model) => sum + model.running, 0);
    return {
      maxSequences: this.#maxSequences,
      maxWaiting: this.#maxWaiting,
      running: Math.min(running, this.#generations.size),
      waiting: Math.max(0, this.#generations.size - running),
      models: this.#models,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#sweeper);
    if (this.#failure !== undefined) return;
    this.#flush();
    await endThread(
      this.#worker,
      () => this.#post({ kind: "close", call: this.#calledTimes++ }),
      CLOSE_GRACE_MS,
    );
  }

  #checkUsable(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closing !== undefined) {
      throw new EngineFailedError("The engine is closed");
    }
  }

  /** Requests of one turn of the event loop are sent together. */
  #submit(request: SubmittedRequest): void {
    this.#outbox.push(request);
    if (this.#outbox.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#outbox.length === 0) return;
    this.#post({ kind: "submit", requests: this.#outbox });
    this.#outbox = [];
  }

  async #call(
    message: (call: number) => ToWorker,
    onProgress?: LoadPolicyOptions["onProgress"],
  ): Promise<void> {
    this.#checkUsable();
    const call = this.#calledTimes++;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#calls.set(call, { resolve, reject, onProgress });
    this.#flush();
    this.#post(message(call));
    return promise;
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "progress") {
      this.#calls.get(message.call)?.onProgress?.(message.progress);
      return;
    }
    this.#models = message.models;
    if (message.kind === "step") {
      for (const step of message.steps) countEngineStep(step);
      for (const event of message.events) this.#settle(event);
      return;
    }
    const call = this.#calls.get(message.call);
    this.#calls.delete(message.call);
    if (message.error === undefined) call?.resolve();
    else call?.reject(decodeError(message.error));
  }

  #settle(event: WireEvent): void {
    const pending = this.#generations.get(event.id);
    if (pending === undefined) return;
    if (event.kind === "tokens") {
      const { kind: _, id: __, ...chunk } = event;
      pending.onTokens?.(chunk);
      return;
    }
    this.#generations.delete(event.id);
    if (event.kind === "done") pending.resolve(event.result);
    else pending.reject(decodeError(event.error));
  }

  /** E1 */
  #sweep(): void {
    const now = sharedClock();
    for (const [id, pending] of this.#generations) {
      if (now < pending.sweptAt) continue;
      this.#generations.delete(id);
      const waited = `${pending.deadlineMs + SWEEP_GRACE_MS} ms`;
      pending.reject(new EngineFailedError(`The engine thread did not answer within ${waited}`));
    }
  }

  /** E1, E2 */
  #fail(error: EngineFailedError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    clearInterval(this.#sweeper);
    for (const pending of [...this.#generations.values(), ...this.#calls.values()]) pending.reject(error);
    this.#generations.clear();
    this.#calls.clear();
    if (this.#closing === undefined) this.#onFailure?.(error);
  }
}
