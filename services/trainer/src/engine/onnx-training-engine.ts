/**
 * The embedded engine as the service sees it: the port, with all computing in a thread of its own, so that a long
 * step never holds up the service's event loop.
 *
 * W1  Every call is answered: by the thread, or by EngineLostError when the thread ends.
 * W2  close() is idempotent; open calls and calls after it fail at once.
 */
import { Worker } from "node:worker_threads";
import { endThread } from "@hone/core";
import type { ScoringOptions, TrainingSample } from "@hone/train";
import type {
  Minibatch,
  MinibatchResult,
  SampleScores,
  SavedState,
  TrainingEngine,
} from "../domain/step/training-engine.ts";
import { embeddedArithmetic, type OnnxEngineConfig, stateBytesOf } from "./engine-config.ts";
import { EngineCallError, EngineLostError } from "./errors.ts";
import type { EngineAnswer, EngineMethod, ToEngine } from "./messages.ts";

export class OnnxTrainingEngine implements TrainingEngine {
  readonly vocabSize: number;
  readonly stateBytes: number;
  readonly arithmetic = embeddedArithmetic();
  readonly #worker: Worker;
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>();
  #lost: EngineLostError | undefined;
  #closing: Promise<void> | undefined;
  #calls = 0;

  constructor(config: OnnxEngineConfig) {
    this.vocabSize = config.spec.vocabSize;
    this.stateBytes = stateBytesOf(config);
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: config });
    this.#worker.on("message", (answer: EngineAnswer) => this.#settle(answer));
    this.#worker.on("error", (cause) => this.#end(new EngineLostError(String(cause), { cause })));
    this.#worker.on("exit", (code) => this.#end(new EngineLostError(`exit code ${code}`)));
  }

  async initialise(): Promise<void> {
    await this.#call("initialise");
  }

  async load(folder: string): Promise<void> {
    await this.#call("load", folder);
  }

  async trainMinibatch(minibatch: Minibatch): Promise<MinibatchResult> {
    return (await this.#call("trainMinibatch", minibatch)) as MinibatchResult;
  }

  async resetOptimizer(): Promise<void> {
    await this.#call("resetOptimizer");
  }

  async logprobs(samples: readonly TrainingSample[], options: ScoringOptions = {}): Promise<SampleScores> {
    return (await this.#call("logprobs", samples, options)) as SampleScores;
  }

  async loadReference(folder: string): Promise<void> {
    await this.#call("loadReference", folder);
  }

  async referenceLogprobs(
    samples: readonly TrainingSample[],
    options: ScoringOptions = {},
  ): Promise<SampleScores> {
    return (await this.#call("referenceLogprobs", samples, options)) as SampleScores;
  }

  async save(folder: string): Promise<SavedState> {
    return (await this.#call("save", folder)) as SavedState;
  }

  async saveWeights(folder: string): Promise<SavedState> {
    return (await this.#call("saveWeights", folder)) as SavedState;
  }

  async exportTo(folder: string): Promise<SavedState> {
    return (await this.#call("exportTo", folder)) as SavedState;
  }

  close(): Promise<void> {
    this.#end(new EngineLostError("closed")); // W2
    this.#closing ??= endThread(this.#worker, () => this.#post({ kind: "end" }));
    return this.#closing;
  }

  #call(method: EngineMethod, ...args: readonly unknown[]): Promise<unknown> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const id = this.#calls++;
    const answered = Promise.withResolvers<unknown>();
    this.#open.set(id, answered);
    this.#post({ kind: "call", id, method, args });
    return answered.promise;
  }

  #post(message: ToEngine): void {
    this.#worker.postMessage(message);
  }

  #settle(answer: EngineAnswer): void {
    const answered = this.#open.get(answer.id);
    this.#open.delete(answer.id);
    if (answer.kind === "result") answered?.resolve(answer.value);
    else answered?.reject(new EngineCallError(answer.code, answer.message));
  }

  /** W1 */
  #end(reason: EngineLostError): void {
    this.#lost ??= reason;
    for (const answered of this.#open.values()) answered.reject(reason);
    this.#open.clear();
  }
}
