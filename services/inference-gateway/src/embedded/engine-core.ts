/**
 * Continuous batching: decides in each step which sequences run on which weights. Runs in the worker thread.
 *
 * C1: sequences, policies and page pools are added and removed only between steps: what arrives during a step
 *     is queued and applied before the next.
 * C2: K/V is never used across versions: a sequence that moves to another version is computed again there, unless its request
 *     says that its own K/V is kept; no other sequence uses what was kept.
 * C3: a policy that is not the newest is kept as long as a sequence needs it.
 * C4: when pages run out, unused prefixes are evicted first; then the youngest sequence starts over later. So the oldest always
 *     finishes.
 */

import { PAGE_ROWS } from "@hone/nn";
import { FinishReason } from "@hone/rl";
import { promptRefusal } from "../domain/check-request.ts";
import {
  EngineBusyError,
  EngineFailedError,
  InvalidRequestError,
  VersionBehindError,
  VersionStaleError,
} from "../domain/errors.ts";
import {
  type GenerateRequest,
  goesOnWith,
  isAllowed,
  isOutdated,
  type LoadedModel,
} from "../domain/inference-engine.ts";
import { Sampler } from "../domain/sampling/sampler.ts";
import type { RowMasses } from "../domain/sampling/sampling-row.ts";
import { PagePool } from "./cache/page-pool.ts";
import { PrefixCache } from "./cache/prefix-cache.ts";
import { DecodeTurns } from "./decode-turns.ts";
import type { EngineEvent } from "./messages.ts";
import { type PlannedWork, planStep, runsOfStep } from "./plan-step.ts";
import type { PolicyRunner, RunCost } from "./policy-runner.ts";
import { PrefillPace } from "./prefill-pace.ts";
import { Sequence, type SequenceHome } from "./sequence.ts";

export interface EngineCoreOptions {
  /** Sequences that run at once, over all models. */
  readonly maxSequences: number;
  /** Further requests that wait, over all models. */
  readonly maxWaiting: number;
  /** Tokens computed in one step. */
  readonly maxStepTokens: number;
  /** Most milliseconds of a step for prompts. @default only the tokens are limited */
  readonly maxStepMs?: number;
  readonly runCost: RunCost;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

const DIVERGED = "The weights have diverged: they give numbers that are not finite";

interface LoadedPolicy extends SequenceHome {
  readonly version: number;
  readonly sampler: Sampler;
  readonly pace: PrefillPace;
  readonly turns: DecodeTurns;
  running: Sequence[];
  waiting: Sequence[];
}

export class EngineCore {
  readonly #options: EngineCoreOptions;
  /** Policies by model, ascending by age: the last is the newest (C3). */
  readonly #models = new Map<string, LoadedPolicy[]>();
  readonly #sequences = new Map<string, Sequence>();
  #betweenSteps: (() => Promise<void>)[] = [];
  #events: EngineEvent[] = [];
  #turn = 0;

  constructor(options: EngineCoreOptions) {
    this.#options = options;
  }

  get hasWork(): boolean {
    return this.#sequences.size > 0 || this.#betweenSteps.length > 0;
  }

  /**
   * Queues a generation, or returns at once why it is refused.
   * @param submittedAt when the caller asked, on the clock of the options; its deadline counts from there.
   */
  submit(request: GenerateRequest, isStreaming: boolean, submittedAt = this.#options.now()): void {
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      this.#events.push({ kind: "failed", id: request.id, error: refusal });
      return;
    }
    const policy = this.#policyFor(request)!;
    const { maxContextTokens } = policy.runner.limits;
    const sequence = new Sequence(request, isStreaming, maxContextTokens, submittedAt);
    this.#sequences.set(request.id, sequence);
    policy.waiting.push(sequence);
  }

  abort(id: string): void {
    const sequence = this.#sequences.get(id);
    if (sequence !== undefined) sequence.isAborted = true;
  }

  /** Makes a version the newest of its model; resolves when that is done, before the next step. */
  install(model: string, version: number, runner: PolicyRunner): Promise<void> {
    return this.#change(() => this.#install(model, version, runner));
  }

  /** Drops a model before the next step; its generations end as aborted. */
  unload(model: string): Promise<void> {
    return this.#change(async () => {
      for (const policy of this.#models.get(model) ?? []) {
        for (const sequence of [...policy.running, ...policy.waiting]) sequence.isAborted = true;
        this.#sweep(policy);
        await policy.runner.dispose();
      }
      this.#models.delete(model);
    });
  }

  /**
   * Computes one step of one policy; the policies take turns. Resolves when its events can be taken.
   * @returns how many sequences took part.
   */
  async step(): Promise<number> {
    for (const change of this.#betweenSteps.splice(0)) await change(); // C1
    const policies = [...this.#models.values()].flat().filter((p) => p.running.length + p.waiting.length > 0);
    const policy = policies[this.#turn++ % Math.max(1, policies.length)];
    if (policy === undefined) return 0;
    this.#sweep(policy);
    this.#admit(policy);
    let sequences = 0;
    try {
      sequences = await this.#compute(policy);
    } catch (error) {
      this.#failAll(policy, error);
    }
    await this.#retire();
    return sequences;
  }

  takeEvents(): EngineEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  models(): LoadedModel[] {
    return Array.from(this.#models, ([model, policies]) => ({
      model,
      versions: policies.map((policy) => policy.version).sort((a, b) => a - b),
      running: policies.reduce((sum, policy) => sum + policy.running.length, 0),
      waiting: policies.reduce((sum, policy) => sum + policy.waiting.length, 0),
    }));
  }

  /** C1 */
  #change(apply: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#betweenSteps.push(() => apply().then(resolve, reject));
    });
  }

  #refusalOf(request: GenerateRequest): Error | undefined {
    const waiting = this.#sequences.size - this.#runningCount();
    if (waiting >= this.#options.maxWaiting) return new EngineBusyError(waiting);
    if (this.#sequences.has(request.id)) {
      return new InvalidRequestError("id", request.id, "must be unique among the calls in flight");
    }
    const policies = this.#models.get(request.model) ?? [];
    const newest = policies.at(-1)?.version;
    const policy = this.#policyFor(request);
    if (policy === undefined) {
      const isBehind = newest === undefined || newest < request.versionRange.lowest;
      return isBehind
        ? new VersionBehindError(request.model, request.versionRange, newest)
        : new VersionStaleError(request.model, request.versionRange, newest);
    }
    const refusal = promptRefusal(request, policy.runner.limits);
    if (refusal !== undefined) return refusal;
    const { maxContextTokens } = policy.runner.limits;
    const needed = Math.min(request.promptIds.length + request.sampling.maxNewTokens, maxContextTokens);
    const rows = (policy.runner.pageCapacity - 1) * PAGE_ROWS;
    if (needed > rows) {
      return new InvalidRequestError(
        "promptIds.length + sampling.maxNewTokens",
        needed,
        `must fit the K/V memory of ${rows} tokens`,
      );
    }
    return undefined;
  }

  /** The newest policy that the request allows. */
  #policyFor(request: GenerateRequest): LoadedPolicy | undefined {
    return this.#models.get(request.model)?.findLast(({ version }) => isAllowed(request, version));
  }

  async #install(model: string, version: number, runner: PolicyRunner): Promise<void> {
    const pool = new PagePool(runner.pageCapacity);
    const { perToken, turnSteps = 1 } = runner.runCost ?? this.#options.runCost;
    // Versions of a model have the same pace.
    const pace = this.#models.get(model)?.at(-1)?.pace ?? new PrefillPace(perToken && perToken / 1_000);
    const policy: LoadedPolicy = {
      version,
      runner,
      pool,
      cache: new PrefixCache(pool),
      sampler: new Sampler(runner.limits.vocabularySize),
      pace,
      turns: new DecodeTurns(turnSteps),
      running: [],
      waiting: [],
    };
    const policies = this.#models.get(model) ?? [];
    for (const old of policies) {
      this.#endOutdated(old, version);
      for (const sequence of takeOut(old, (each) => goesOnWith(each.request, version, each.sampled > 0))) {
        const isKept = sequence.takeRows(policy, old);
        if (!isKept) sequence.discard(old.cache, old.pool); // C2
        (isKept ? policy.running : policy.waiting).push(sequence);
      }
    }
    this.#models.set(model, [...policies, policy]);
    await this.#retire();
  }

  /** Fails the sequences that are of no use once a version is loaded. */
  #endOutdated(policy: LoadedPolicy, version: number): void {
    for (const sequence of takeOut(policy, (s) => isOutdated(s.request, s.firstVersion, version))) {
      const { id, model, versionRange } = sequence.request;
      sequence.discard(policy.cache, policy.pool);
      this.#sequences.delete(id);
      this.#events.push({ kind: "failed", id, error: new VersionStaleError(model, versionRange, version) });
    }
  }

  /** Ends sequences that were aborted or have reached their deadline. */
  #sweep(policy: LoadedPolicy): void {
    const now = this.#options.now();
    const isOver = (sequence: Sequence) => sequence.isAborted || now >= sequence.deadlineAt;
    for (const sequence of takeOut(policy, isOver)) {
      sequence.release(policy.cache, policy.pool);
      this.#finish(sequence, sequence.isAborted ? FinishReason.aborted : FinishReason.deadline, now);
    }
  }

  #admit(policy: LoadedPolicy): void {
    const room = this.#options.maxSequences - this.#runningCount();
    const now = this.#options.now();
    for (const sequence of policy.waiting.splice(0, room)) {
      sequence.start(policy.cache, now);
      policy.running.push(sequence);
    }
  }

  /** @returns how many sequences took part. */
  async #compute(policy: LoadedPolicy): Promise<number> {
    const { maxStepTokens, maxStepMs = Number.POSITIVE_INFINITY, runCost, now } = this.#options;
    const { vocabularySize } = policy.runner.limits;
    for (const sequence of policy.running) sequence.catchUp(policy.cache, now());
    const cost = policy.runner.runCost ?? runCost;
    const prefillTokens = policy.pace.tokensIn(maxStepMs);
    const items = planStep(policy.running, maxStepTokens, prefillTokens, cost.maxNewTokens)
      .filter((work) => this.#takePages(policy, work))
      // An older sequence may have taken the pages of this one.
      .filter(({ sequence }) => sequence.lease !== undefined)
      .map(({ sequence }) => ({ ...sequence.item(), sequence }));
    const runs = runsOfStep(items, cost, policy.turns);
    for (const group of runs) {
      const startedAt = now();
      const { logits, masses, broken } = await policy.runner.run(group);
      const at = now();
      const prefilled = group.reduce((sum, { count }) => sum + (count > 1 ? count : 0), 0);
      policy.pace.measured(prefilled, at - startedAt);
      let next = 0;
      for (const [index, { sequence, wantsLogits }] of group.entries()) {
        const row = next;
        if (wantsLogits) next++;
        if (broken.includes(index)) {
          this.#drop(policy, sequence, new EngineFailedError(DIVERGED));
          continue;
        }
        sequence.advance(policy.cache);
        if (!wantsLogits) continue;
        const rowLogits = logits?.subarray(row * vocabularySize, next * vocabularySize);
        this.#sample(policy, sequence, rowLogits, masses?.[row], at);
      }
    }
    return runs.flat().length;
  }

  #sample(
    policy: LoadedPolicy,
    sequence: Sequence,
    logits: Float32Array | undefined,
    masses: RowMasses | undefined,
    now: number,
  ): void {
    const { sampling } = sequence.request;
    const { sampler } = policy;
    try {
      sampler.sample(logits, sampling, sequence.uniform, { masses, text: sequence });
    } catch (error) {
      this.#drop(policy, sequence, error);
      return;
    }
    sequence.append(sampler, policy.version, now);
    const isStopped = sampling.stopTokenIds.includes(sampler.tokenId);
    if (isStopped || sequence.length === sequence.tokenIds.length) {
      policy.running = policy.running.filter((other) => other !== sequence);
      sequence.release(policy.cache, policy.pool);
      this.#finish(sequence, isStopped ? FinishReason.stop : FinishReason.length, now);
    } else if (sequence.isStreaming) {
      this.#reportTokens(sequence);
    }
  }

  /** Gives the work its pages (C4). @returns false when it has to wait. */
  #takePages(policy: LoadedPolicy, { sequence, count }: PlannedWork): boolean {
    const { pool, cache, runner, running, waiting } = policy;
    while (sequence.lease !== undefined) {
      if (sequence.takePages(pool, count, runner)) return true;
      cache.evict(Math.ceil(count / PAGE_ROWS) + 1);
      if (sequence.takePages(pool, count, runner)) return true;
      const youngest = running.pop()!;
      youngest.discard(cache, pool);
      waiting.unshift(youngest);
      // The last sequence may lack pages only because of its shared prefix; without one there are enough.
      if (running.length === 0) cache.evict(pool.capacity);
    }
    return false;
  }

  /** Drops policies that nothing needs (C3). */
  async #retire(): Promise<void> {
    for (const [model, policies] of this.#models) {
      const newest = policies.at(-1);
      const isNeeded = (p: LoadedPolicy) => p === newest || p.running.length + p.waiting.length > 0;
      for (const policy of policies) if (!isNeeded(policy)) await policy.runner.dispose();
      if (!policies.every(isNeeded)) this.#models.set(model, policies.filter(isNeeded));
    }
  }

  #runningCount(): number {
    let count = 0;
    for (const policies of this.#models.values())
      for (const policy of policies) count += policy.running.length;
    return count;
  }

  #reportTokens(sequence: Sequence): void {
    const chunk = sequence.takeChunk();
    if (chunk.tokenIds.length > 0) this.#events.push({ kind: "tokens", id: sequence.request.id, ...chunk });
  }

  #finish(sequence: Sequence, reason: FinishReason, now: number): void {
    if (sequence.isStreaming) this.#reportTokens(sequence);
    this.#sequences.delete(sequence.request.id);
    this.#events.push({ kind: "done", id: sequence.request.id, result: sequence.result(reason, now) });
  }

  /** Ends a sequence that cannot continue, and keeps nothing of it. */
  #drop(policy: LoadedPolicy, sequence: Sequence, error: unknown): void {
    policy.running = policy.running.filter((other) => other !== sequence);
    sequence.discard(policy.cache, policy.pool);
    this.#fail(sequence, error);
  }

  #fail(sequence: Sequence, error: unknown): void {
    this.#sequences.delete(sequence.request.id);
    const failure =
      error instanceof EngineFailedError
        ? error
        : new EngineFailedError("The engine's step failed", { cause: error });
    this.#events.push({ kind: "failed", id: sequence.request.id, error: failure });
  }

  #failAll(policy: LoadedPolicy, error: unknown): void {
    for (const sequence of policy.running) {
      sequence.discard(policy.cache, policy.pool);
      this.#fail(sequence, error);
    }
    policy.running = [];
  }
}

/** Takes sequences out of a policy's lists. @returns them, those that run first. */
function takeOut(policy: LoadedPolicy, isOver: (sequence: Sequence) => boolean): Sequence[] {
  const over = [...policy.running, ...policy.waiting].filter(isOver);
  policy.running = policy.running.filter((sequence) => !isOver(sequence));
  policy.waiting = policy.waiting.filter((sequence) => !isOver(sequence));
  return over;
}
