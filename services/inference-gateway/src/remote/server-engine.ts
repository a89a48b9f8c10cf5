/**
 * Implements the port with an inference server beside this gateway.
 *
 * S1: the server holds the weights of one version. They change only while nothing runs on them.
 * S2: when a version comes, generations that may move to it are cut off and continue from their own tokens on the new
 *     weights, so that the version of each token is known. The load waits for the others, and for those that shall finish.
 * S3: no generation reaches a server whose weights are not known. A server that was away, or is another process, is inspected
 *     and gets its weights again first.
 * S4: a generation settles by its deadline, also if the server hangs.
 * S5: loads, checks and unloads of the server run one after the other.
 *
 * G1 is not guaranteed: vLLM and SGLang draw other tokens in other batches.
 */

import { raceAbortable, Semaphore } from "@hone/core";
import { FinishReason, type VersionSpan } from "@hone/rl";
import { checkRequest, promptRefusal } from "../domain/check-request.ts";
import {
  EngineBusyError,
  EngineFailedError,
  InvalidRequestError,
  PolicyLoadError,
  ServerRefusedError,
  VersionBehindError,
  VersionStaleError,
} from "../domain/errors.ts";
import {
  type EngineCapacity,
  type EngineGeneration,
  type GenerateOptions,
  type GenerateRequest,
  goesOnWith,
  type InferenceEngine,
  isAllowed,
  isOutdated,
  type LoadPolicyOptions,
  type PolicySource,
} from "../domain/inference-engine.ts";
import type { EngineServer, LabelSpan, ServerFacts } from "./engine-server.ts";
import { HeldWeights, type WeightsChange } from "./held-weights.ts";
import { readServerPolicy, type ServerPolicy, versionInLabel } from "./read-server-policy.ts";
import { brokenSamplingRules } from "./sampling-rules.ts";
import { removeViews } from "./served-folder.ts";
import { ServerGeneration } from "./server-generation.ts";
import { ServerKeeper, type ServerState } from "./server-keeper.ts";

export interface ServerEngineOptions {
  readonly server: EngineServer;
  /** Sequences that run at the server at once. @default 256 */
  readonly maxSequences?: number;
  /** Further requests that wait; more are refused. @default 1_024 */
  readonly maxWaiting?: number;
  /** Time between two checks of the server. @default 1_000 */
  readonly lookEveryMs?: number;
  /** How long a load waits for a server that starts; then it fails and is tried again. @default 30_000 */
  readonly readyWaitMs?: number;
  /** Folder for this engine's folders of links, which the server can read too; absent = the server reads the policies' folders. */
  readonly viewFolder?: string;
  /** Called when the server comes, goes, or has its weights again. */
  readonly onChange?: (change: ServerChange) => void;
}

export type ServerChange =
  | { readonly kind: "ready"; readonly facts: ServerFacts }
  | { readonly kind: "away"; readonly reason: string }
  | WeightsChange;

/** A timer with a longer time would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class ServerEngine implements InferenceEngine {
  readonly #server: EngineServer;
  readonly #maxSequences: number;
  readonly #maxWaiting: number;
  readonly #readyWaitMs: number;
  readonly #viewFolder: string | undefined;
  readonly #onChange: (change: ServerChange) => void;
  readonly #keeper: ServerKeeper;
  readonly #slots: Semaphore;
  readonly #generations = new Map<string, ServerGeneration>();
  readonly #running = new Set<ServerGeneration>();
  /** Generations with a call at the server. */
  readonly #streaming = new Set<ServerGeneration>();
  readonly #weights: HeldWeights;
  /** Resolved when the server has no call any more. */
  #idle: PromiseWithResolvers<void> | undefined;
  #turn: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: ServerEngineOptions) {
    const { server, maxSequences = 256, maxWaiting = 1_024, lookEveryMs = 1_000 } = options;
    this.#server = server;
    this.#maxSequences = maxSequences;
    this.#maxWaiting = maxWaiting;
    this.#readyWaitMs = options.readyWaitMs ?? 30_000;
    this.#viewFolder = options.viewFolder;
    this.#onChange = options.onChange ?? (() => undefined);
    this.#slots = new Semaphore(maxSequences);
    this.#keeper = new ServerKeeper({
      server,
      everyMs: lookEveryMs,
      inTurn: (work) => this.#inTurn(work),
      onReady: async (facts) => {
        this.#onChange({ kind: "ready", facts });
        await this.#weights.met(facts);
      },
      onAway: (reason) => this.#lost(reason),
      onSteady: () => this.#weights.restore(),
    });
    this.#weights = new HeldWeights({
      server,
      keeper: this.#keeper,
      drain: (version) => this.#drain(version),
      onChange: this.#onChange,
    });
  }

  /** Whether the server is ready. */
  get state(): ServerState {
    return this.#keeper.state;
  }

  /** The facts of the server when it was last ready; undefined before the first time. */
  get facts(): ServerFacts | undefined {
    return this.#keeper.facts;
  }

  async generate(request: GenerateRequest, options: GenerateOptions = {}): Promise<EngineGeneration> {
    checkRequest(request);
    this.#checkOpen();
    if (this.#generations.has(request.id)) {
      throw new InvalidRequestError("id", request.id, "must be unique among the calls in flight");
    }
    this.#policyFor(request);
    const facts = this.facts!;
    this.#checkServable(request, facts);
    const waiting = this.#generations.size - this.#running.size;
    const isFull = this.#generations.size >= this.#maxSequences + this.#maxWaiting;
    if (isFull) throw new EngineBusyError(waiting);
    const { signal, onTokens } = options;
    const generation = new ServerGeneration(request, facts.maxContextTokens, onTokens);
    this.#generations.set(request.id, generation);
    const late = () => generation.end(FinishReason.deadline); // S4
    const timer = setTimeout(late, Math.min(request.deadlineMs, MAX_TIMER_MS));
    const onAbort = () => generation.end(FinishReason.aborted);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      return generation.result(await this.#run(generation));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#generations.delete(request.id);
    }
  }

  async loadPolicy(source: PolicySource, { onProgress }: LoadPolicyOptions = {}): Promise<void> {
    this.#checkOpen();
    await this.#keeper.untilReady(this.#readyWaitMs);
    await this.#inTurn(async () => {
      this.#checkOpen();
      const { version, model } = source;
      const { state } = this;
      const action = `Cannot load version ${version} of ${model}`;
      if (state.kind !== "ready") {
        throw new PolicyLoadError(`${action}: ${this.#server.name} is not ready: ${state.reason}`);
      }
      const startedAt = performance.now();
      const policy = await readServerPolicy(source, state.facts, this.#viewFolder);
      const refusal = this.#weights.refusalOf(policy);
      if (refusal !== undefined) throw new PolicyLoadError(`${action}: ${refusal}`);
      onProgress?.({ stage: "read", tookMs: performance.now() - startedAt });
      const readAt = performance.now();
      await this.#weights.replace(policy);
      if (this.#viewFolder !== undefined) await removeViews(this.#viewFolder, [policy.weights.label]);
      onProgress?.({ stage: "swapped", tookMs: performance.now() - readAt });
    });
  }

  unload(model: string): Promise<void> {
    return this.#inTurn(async () => {
      for (const generation of this.#generations.values()) {
        if (generation.request.model === model) generation.end(FinishReason.aborted);
      }
      await this.#weights.drop(model);
    });
  }

  abort(id: string): void {
    this.#generations.get(id)?.end(FinishReason.aborted);
  }

  capacity(): EngineCapacity {
    const running = this.#running.size;
    const waiting = this.#generations.size - running;
    const { held } = this.#weights;
    const models = held === undefined ? [] : [held.source];
    return {
      maxSequences: this.#maxSequences,
      maxWaiting: this.#maxWaiting,
      running,
      waiting,
      models: models.map(({ model, version }) => ({ model, versions: [version], running, waiting })),
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const generation of this.#generations.values()) generation.end(FinishReason.aborted);
    await this.#keeper.close();
    await this.#turn;
    this.#server.close();
  }

  // -- Generations -----------------------------------------------------------------------------------------------

  async #run(generation: ServerGeneration): Promise<FinishReason> {
    let hasPlace = false;
    try {
      await this.#slots.acquire(generation.signal);
      hasPlace = true;
      generation.begin();
      this.#running.add(generation);
      while (true) {
        const policy = await this.#admit(generation);
        const reason = await this.#stream(generation, policy);
        if (reason !== undefined) return reason;
      }
    } catch (error) {
      if (generation.ended !== undefined) return generation.ended;
      throw generation.failure ?? error;
    } finally {
      this.#running.delete(generation);
      if (hasPlace) this.#slots.release();
    }
  }

  /** S1: waits while weights change, unless the generation must end on those that are still loaded. */
  async #admit(generation: ServerGeneration): Promise<ServerPolicy> {
    const { request } = generation;
    for (let change = this.#weights.change; change !== undefined; change = this.#weights.change) {
      const { held } = this.#weights;
      const isOfOld = held !== undefined && isAllowed(request, held.source.version);
      if (isOfOld && !change.isLoading && !isAllowed(request, change.version)) break;
      await raceAbortable(change.done, generation.signal);
    }
    return this.#policyFor(request);
  }

  /** Makes one call. @returns undefined when the generation continues with another call. */
  async #stream(generation: ServerGeneration, policy: ServerPolicy): Promise<FinishReason | undefined> {
    const { request } = generation;
    const before = generation.tokenCount;
    const { call, signal } = generation.nextCall(policy.weights);
    let end: "stop" | "length" | "abort" | undefined;
    let labels: readonly LabelSpan[] | undefined;
    this.#streaming.add(generation);
    try {
      for await (const chunk of this.#server.generate(call, signal)) {
        generation.take(chunk);
        end ??= chunk.end;
        labels = chunk.labels ?? labels;
      }
    } catch (cause) {
      if (generation.ended === undefined) throw this.#failureOf(cause, policy);
    } finally {
      this.#streaming.delete(generation);
      if (this.#streaming.size === 0) this.#idle?.resolve();
    }
    const made = generation.tokenCount - before;
    generation.attribute(this.#versionsOf(request, policy, made, labels));
    if (generation.ended !== undefined) return generation.ended;
    if (generation.failure !== undefined) throw generation.failure;
    const isStopped = made > 0 && request.sampling.stopTokenIds.includes(generation.lastTokenId!);
    if (end === "stop" && isStopped) return FinishReason.stop;
    if (generation.isFull) return FinishReason.length;
    if (end === "length") return FinishReason.length;
    // The server's own stop token is part of the sample; only those of the caller end it.
    if (generation.isMoving || (end === "stop" && made > 0)) return undefined;
    if (end === "abort" && this.#weights.change !== undefined) return undefined;
    this.#keeper.look();
    const found = end === "abort" ? "it was aborted there" : `${end ?? "no reason"} after ${made} tokens`;
    throw new EngineFailedError(
      `${this.#server.name} did not say why the generation ended, or a reason that cannot be: ${found}`,
    );
  }

  /** A server that was restarted refuses adapters that it had before. With whole weights a refusal is about the request. */
  #failureOf(cause: unknown, { weights }: ServerPolicy): Error {
    const isRefusal = cause instanceof ServerRefusedError && (cause.status === 400 || cause.status === 422);
    if (isRefusal && weights.kind === "whole") {
      return new InvalidRequestError("request", cause.message, `must be one that ${this.#server.name} takes`);
    }
    this.#keeper.look();
    return new EngineFailedError(`${this.#server.name} failed during the generation`, { cause });
  }

  /** G3: by the server's own labels, if it has some. */
  #versionsOf(
    request: GenerateRequest,
    { source, weights }: ServerPolicy,
    made: number,
    labels: readonly LabelSpan[] | undefined,
  ): VersionSpan[] {
    if (labels === undefined || weights.kind === "adapter") {
      return [{ version: source.version, tokenCount: made }];
    }
    let left = made;
    const spans = labels.map(({ label, tokenCount }) => {
      const version = versionInLabel(label, source.model);
      if (version === undefined || !isAllowed(request, version)) {
        this.#keeper.look();
        throw new EngineFailedError(
          `${this.#server.name} generated with the weights "${label}"; they must be of ${source.model}, versions ${request.versionRange.lowest} to ${request.versionRange.highest}`,
        );
      }
      const counted = Math.min(left, tokenCount);
      left -= counted;
      return { version, tokenCount: counted };
    });
    return [...spans, { version: spans.at(-1)?.version ?? source.version, tokenCount: left }];
  }

  #policyFor({ model, versionRange }: GenerateRequest): ServerPolicy {
    const { held, missing } = this.#weights;
    if (held?.source.model !== model) {
      if (missing?.source.model !== model) throw new VersionBehindError(model, versionRange, undefined);
      const reason = this.state.kind === "away" ? this.state.reason : "they are being loaded again";
      throw new EngineFailedError(
        `${this.#server.name} does not hold the weights of ${model} at the moment: ${reason}`,
      );
    }
    const { version } = held.source;
    if (version < versionRange.lowest) throw new VersionBehindError(model, versionRange, version);
    if (version > versionRange.highest) throw new VersionStaleError(model, versionRange, version);
    return held;
  }

  #checkServable(request: GenerateRequest, { maxContextTokens, scoring }: ServerFacts): void {
    const { vocabularySize } = this.#weights.held!;
    const refusal = promptRefusal(request, { maxContextTokens, vocabularySize });
    if (refusal !== undefined) throw refusal;
    const [broken] = brokenSamplingRules(request.sampling, scoring, this.#server.bounds);
    if (broken === undefined) return;
    throw new InvalidRequestError(`sampling.${broken.key}`, broken.value, `must be ${broken.allowed}`);
  }

  #checkOpen(): void {
    if (this.#closing === undefined) return;
    throw new EngineFailedError("The engine is closed");
  }

  // -- Weights ---------------------------------------------------------------------------------------------------

  /** S5 */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  /** S2 */
  async #drain(version: number): Promise<void> {
    for (const generation of this.#streaming) {
      const { request, firstVersion = this.#weights.held?.source.version } = generation;
      if (isOutdated(request, firstVersion, version)) {
        generation.fail(new VersionStaleError(request.model, request.versionRange, version));
      } else if (goesOnWith(request, version, generation.tokenCount > 0)) generation.move();
    }
    if (this.#streaming.size > 0) {
      this.#idle = Promise.withResolvers<void>();
      await this.#idle.promise;
    }
    this.#idle = undefined;
  }

  /** S3 */
  #lost(reason: string): void {
    this.#weights.lost();
    const failure = new EngineFailedError(`${this.#server.name} was lost during the generation: ${reason}`);
    for (const generation of this.#generations.values()) generation.fail(failure);
    this.#onChange({ kind: "away", reason });
  }
}
