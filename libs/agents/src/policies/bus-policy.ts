/**
 * The policy behind the bus: a call goes to one replica, and to another one when that is dead, busy or behind.
 *
 * P1: every try sends the same tokens, seed and version range, so that another replica gives the same answer.
 * P2: waiting for a replica has a deadline of its own, which is long: Hone's own parts come back.
 * P3: the replica of a call that nobody waits for any more is told so.
 */

import { create } from "@bufbuild/protobuf";
import { DeadlineError, delay, raceAbortable } from "@hone/core";
import {
  type Bus,
  BusUnavailableError,
  requestStream,
  subjects,
  UndecodableMessageError,
} from "@hone/messaging";
import {
  type GenerateDone,
  type GenerateError,
  type GenerateReply,
  GenerateReplySchema,
  type GenerateRequest,
  GenerateRequestSchema,
  GenerateError_Reason as Reason,
  FinishReason as WireFinishReason,
} from "@hone/proto-gen/policy";
import { FinishReason } from "@hone/rl";
import { PolicyRefusedError, PolicyStaleError, PolicyUnavailableError } from "../errors.ts";
import type { GenerateCall, Policy, PolicyGeneration } from "./policy.ts";
import { chooseReplica } from "./rendezvous.ts";
import type { ReplicaDirectory } from "./replica-directory.ts";

/** Options of {@link BusPolicy}. */
export interface BusPolicyOptions {
  /** A replica that says nothing for this long is taken for dead. @default 6_000 */
  readonly idleTimeoutMs?: number;
  /** Longest wait for a replica (P2). @default 600_000 */
  readonly maxWaitMs?: number;
  /** Told when a call has to be tried again, with the reason. */
  readonly onRetry?: (reason: string, call: GenerateCall) => void;
}

/** Several heartbeats, which come every second or two. */
const DEFAULT_IDLE_TIMEOUT_MS = 6_000;
/** A cluster's engine may take minutes to come back. */
const DEFAULT_MAX_WAIT_MS = 600_000;
/** Without news of the replicas, look again after this. */
const LOOK_AGAIN_MS = 100;
/** What a replica gets beyond the call's own deadline, so that its answer "out of time" still arrives. */
const DEADLINE_GRACE_MS = 1_000;
/**
 * A replica counts a call's deadline from its receipt, its queue included. One that it cut off there used up the attempt's
 * time only if it worked on it for about that long; otherwise the queue did, which is not the attempt's fault.
 */
const OWN_TIME_SHARE = 0.8;
const MAX_UINT32 = 0xffff_ffff;

/** What came of asking one replica. */
type Try =
  | { readonly kind: "done"; readonly generation: PolicyGeneration }
  | { readonly kind: "again"; readonly reason: string };

export class BusPolicy implements Policy {
  readonly #bus: Bus;
  readonly #replicas: ReplicaDirectory;
  readonly #idleTimeoutMs: number;
  readonly #maxWaitMs: number;
  readonly #onRetry: (reason: string, call: GenerateCall) => void;

  constructor(bus: Bus, replicas: ReplicaDirectory, options: BusPolicyOptions = {}) {
    this.#bus = bus;
    this.#replicas = replicas;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS;
    this.#maxWaitMs = options.maxWaitMs ?? DEFAULT_MAX_WAIT_MS;
    this.#onRetry = options.onRetry ?? (() => undefined);
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const { model, lowestVersion, highestVersion, signal } = call;
    const startedAt = performance.now();
    const request = toWire(call);
    const refused = new Set<string>();
    const told = { count: 0 };
    let reason = "";
    while (true) {
      signal.throwIfAborted();
      const serving = this.#replicas.serving(model, lowestVersion, highestVersion);
      const replica = chooseReplica(
        call.groupId,
        serving.filter(({ name }) => !refused.has(name)),
      );
      if (replica === undefined) {
        const waitedMs = performance.now() - startedAt;
        if (serving.length === 0) reason = this.#replicas.describe(model, lowestVersion, highestVersion);
        if (waitedMs > this.#maxWaitMs) throw new PolicyUnavailableError(reason, waitedMs);
        await this.#news(signal);
        refused.clear();
        continue;
      }
      const tried = await this.#try(request, call, replica.name, told);
      if (tried.kind === "done") return tried.generation;
      reason = `${replica.name}: ${tried.reason}`;
      refused.add(replica.name);
      this.#onRetry(reason, call);
    }
  }

  /** @param told tokens that the caller knows, from tries before: another replica makes the same ones (P1). */
  async #try(
    request: GenerateRequest,
    call: GenerateCall,
    replica: string,
    told: { count: number },
  ): Promise<Try> {
    const { model, signal, enough } = call;
    const close = this.#replicas.open(model, replica);
    const onEnough = () => this.#abort(model, replica, call.requestId);
    enough?.addEventListener("abort", onEnough, { once: true });
    // Unknown until the replica says where the request stands.
    let queuePosition: number | undefined;
    let made = 0;
    const tell = (tokenIds: readonly number[]) => {
      const isNew = tokenIds.slice(Math.max(0, told.count - made));
      made += tokenIds.length;
      told.count = Math.max(told.count, made);
      if (isNew.length > 0) call.onTokens?.(isNew);
    };
    try {
      const reply = await requestStream(
        this.#bus,
        subjects.generate(model, replica),
        GenerateRequestSchema,
        request,
        GenerateReplySchema,
        {
          idleTimeoutMs: this.#idleTimeoutMs,
          deadlineMs: call.deadlineMs + DEADLINE_GRACE_MS,
          isLast: ({ kind }) => kind.case === "done" || kind.case === "error",
          onMessage: ({ kind }) => {
            if (kind.case === "heartbeat") queuePosition = kind.value.queuePosition;
            if (kind.case === "tokens") {
              queuePosition = 0;
              tell(kind.value.tokenIds);
            }
          },
          trace: call.trace,
          signal,
        },
      );
      const tried = read(reply, call, replica);
      if (tried.kind === "broken") this.#replicas.setAside(model, replica);
      return tried.kind === "broken" ? { kind: "again", reason: tried.reason } : tried;
    } catch (error) {
      // An answer that nobody can read is the replica's fault, never the agent's.
      if (error instanceof BusUnavailableError || error instanceof UndecodableMessageError) {
        this.#replicas.setAside(model, replica);
        return { kind: "again", reason: error.message };
      }
      if (signal.aborted || error instanceof DeadlineError) this.#abort(model, replica, call.requestId);
      // Only a replica that was at work on it makes the call late: a silent one may be dead, a queue is not the agent's.
      if (error instanceof DeadlineError && queuePosition !== 0) {
        if (queuePosition === undefined) this.#replicas.setAside(model, replica);
        return {
          kind: "again",
          reason: queuePosition === undefined ? error.message : `still number ${queuePosition} in its queue`,
        };
      }
      throw error;
    } finally {
      enough?.removeEventListener("abort", onEnough);
      close();
    }
  }

  #abort(model: string, replica: string, requestId: string): void {
    if (this.#bus.connection.isClosed()) return;
    this.#bus.connection.publish(subjects.abort(model, replica), requestId);
  }

  /** Waits until something is heard of the replicas, or for a moment. */
  async #news(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    try {
      await raceAbortable(
        Promise.race([this.#replicas.changed(), delay(LOOK_AGAIN_MS, { signal: ended.signal })]),
        signal,
      );
    } finally {
      ended.abort();
    }
  }
}

function read(
  { kind }: GenerateReply,
  call: GenerateCall,
  replica: string,
): Try | { readonly kind: "broken"; readonly reason: string } {
  if (kind.case === "error") return { kind: "again", reason: retryReason(kind.value) };
  if (kind.case !== "done") return { kind: "broken", reason: "an answer without content" };
  const rule = brokenRule(kind.value, call);
  if (rule !== undefined) return { kind: "broken", reason: `a broken answer: ${rule}` };
  const generation = fromWire(kind.value, replica);
  const isCutOff = generation.finishReason === FinishReason.aborted && call.enough?.aborted !== true;
  if (isCutOff && generation.generationMs < OWN_TIME_SHARE * call.deadlineMs) {
    return { kind: "again", reason: `cut off after ${Math.round(kind.value.queueMs)} ms in its queue` };
  }
  return { kind: "done", generation };
}

/** What an answer breaks of what its parts say of one another; it would spoil the record of its rollout. */
function brokenRule(done: GenerateDone, { sampling }: GenerateCall): string | undefined {
  const count = done.tokenIds.length;
  const versioned = done.versions.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  if (count > sampling.maxNewTokens) return `${count} tokens where ${sampling.maxNewTokens} were asked for`;
  if (done.logprobs.length !== count) return `${done.logprobs.length} logprobs of ${count} tokens`;
  if (!done.logprobs.every((logprob) => Number.isFinite(logprob))) return "a logprob that is no number";
  if (versioned !== count) return `versions of ${versioned} tokens where there are ${count}`;
  const generationMs = done.prefillMs + done.decodeMs;
  return generationMs >= 0 && Number.isFinite(generationMs) ? undefined : `${generationMs} ms of work`;
}

/** Why another try is worth it. @throws when it is not. */
function retryReason({ reason, message }: GenerateError): string {
  switch (reason) {
    case Reason.INVALID:
      throw new PolicyRefusedError(message);
    case Reason.STALE:
      throw new PolicyStaleError(message);
    case Reason.BUSY:
      return `busy (${message})`;
    case Reason.BEHIND:
      return `behind (${message})`;
    case Reason.UNAVAILABLE:
      return `unavailable (${message})`;
    default:
      // Also a reason that a newer gateway knows.
      return `failed (${message})`;
  }
}

function toWire(call: GenerateCall): GenerateRequest {
  return create(GenerateRequestSchema, {
    model: call.model,
    requestId: call.requestId,
    promptIds: call.promptIds as number[],
    sampling: call.sampling,
    stopTokenIds: call.stopTokenIds as number[],
    seed: BigInt(call.seed),
    sessionId: call.sessionId,
    groupId: call.groupId,
    lowestVersion: call.lowestVersion,
    highestVersion: call.highestVersion,
    deadlineMs: Math.min(MAX_UINT32, Math.max(1, Math.ceil(call.deadlineMs))),
    isStreaming: call.onTokens !== undefined,
  });
}

function fromWire(done: GenerateDone, replica: string): PolicyGeneration {
  return {
    tokenIds: done.tokenIds,
    logprobs: done.logprobs,
    versions: done.versions,
    finishReason: finishReasonOf(done.finishReason),
    cachedTokens: done.cachedTokens,
    generationMs: done.prefillMs + done.decodeMs,
    replica,
  };
}

function finishReasonOf(reason: WireFinishReason): FinishReason {
  switch (reason) {
    case WireFinishReason.STOP:
      return FinishReason.stop;
    case WireFinishReason.LENGTH:
      return FinishReason.length;
    default:
      return FinishReason.aborted;
  }
}
