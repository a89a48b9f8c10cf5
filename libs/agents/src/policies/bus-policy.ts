/**
 * The policy behind the bus: a call goes to one replica, and to another one when the first is dead, busy or behind.
 *
 * P1: every try sends the same tokens, seed and version range, so that another replica gives the same answer.
 * P2: waiting for a replica has a separate, long deadline, because a replica that stopped is usually started again.
 * P3: when nobody waits for a call any more, its replica is sent an abort.
 */

import { create } from "@bufbuild/protobuf";
import { DeadlineError, delay, raceAbortable } from "@hone/core";
import {
  type Bus,
  BusUnavailableError,
  onNewVersionToWire,
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
  /** A replica that sends nothing for this long is considered dead. @default 6_000 */
  readonly idleTimeoutMs?: number;
  /** Longest wait for a replica (P2). @default 600_000 */
  readonly maxWaitMs?: number;
  /** Called with the reason when a call has to be tried again. */
  readonly onRetry?: (reason: string, call: GenerateCall) => void;
}

/** Several heartbeats, which come every second or two. */
const DEFAULT_IDLE_TIMEOUT_MS = 6_000;
/** A cluster's engine may take minutes to come back. */
const DEFAULT_MAX_WAIT_MS = 600_000;
/** How long to wait for a change of the replicas before they are looked at again. */
const LOOK_AGAIN_MS = 100;
/** Time that a replica gets beyond the call's deadline, so that its answer "out of time" still arrives. */
const DEADLINE_GRACE_MS = 1_000;
/**
 * A replica measures a call's deadline from its receipt, so time in its queue counts. When the replica cuts the call off, the
 * attempt has used up its time only if the replica worked on the call for at least this share of the deadline; otherwise the
 * time was lost in the queue, and the call is tried elsewhere.
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
    const reported = { count: 0 };
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
        await this.#replicasChanged(signal);
        refused.clear();
        continue;
      }
      const tried = await this.#try(request, call, replica.name, reported);
      if (tried.kind === "done") return tried.generation;
      reason = `${replica.name}: ${tried.reason}`;
      refused.add(replica.name);
      this.#onRetry(reason, call);
    }
  }

  /** @param reported how many tokens earlier tries reported to the caller; another replica makes the same ones (P1). */
  async #try(
    request: GenerateRequest,
    call: GenerateCall,
    replica: string,
    reported: { count: number },
  ): Promise<Try> {
    const { model, signal, stopSignal } = call;
    const close = this.#replicas.open(model, replica);
    const onStop = () => this.#abort(model, replica, call.requestId);
    stopSignal?.addEventListener("abort", onStop, { once: true });
    // Unknown until the replica reports the request's place in its queue.
    let queuePosition: number | undefined;
    let made = 0;
    const report = (tokenIds: readonly number[]) => {
      const newIds = tokenIds.slice(Math.max(0, reported.count - made));
      made += tokenIds.length;
      reported.count = Math.max(reported.count, made);
      if (newIds.length > 0) call.onTokens?.(newIds);
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
              report(kind.value.tokenIds);
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
      // An answer that cannot be decoded is the replica's fault, never the agent's.
      if (error instanceof BusUnavailableError || error instanceof UndecodableMessageError) {
        this.#replicas.setAside(model, replica);
        return { kind: "again", reason: error.message };
      }
      if (signal.aborted || error instanceof DeadlineError) this.#abort(model, replica, call.requestId);
      // The attempt is out of time only if the replica was working on the call. A silent replica may be dead, and time in a
      // queue does not count against the agent.
      if (error instanceof DeadlineError && queuePosition !== 0) {
        if (queuePosition === undefined) this.#replicas.setAside(model, replica);
        return {
          kind: "again",
          reason: queuePosition === undefined ? error.message : `still number ${queuePosition} in its queue`,
        };
      }
      throw error;
    } finally {
      stopSignal?.removeEventListener("abort", onStop);
      close();
    }
  }

  #abort(model: string, replica: string, requestId: string): void {
    if (this.#bus.connection.isClosed()) return;
    this.#bus.connection.publish(subjects.abort(model, replica), requestId);
  }

  /** Waits until the replicas change, but not longer than LOOK_AGAIN_MS. */
  async #replicasChanged(signal: AbortSignal): Promise<void> {
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
  const flaw = flawOf(kind.value, call);
  if (flaw !== undefined) return { kind: "broken", reason: `a broken answer: ${flaw}` };
  const generation = fromWire(kind.value, replica);
  const isCutOff = generation.finishReason === FinishReason.aborted && call.stopSignal?.aborted !== true;
  if (isCutOff && generation.generationMs < OWN_TIME_SHARE * call.deadlineMs) {
    return { kind: "again", reason: `cut off after ${Math.round(kind.value.queueMs)} ms in its queue` };
  }
  return { kind: "done", generation };
}

/** How the parts of an answer contradict one another or the request; such an answer would spoil the rollout's record. */
function flawOf(done: GenerateDone, { sampling }: GenerateCall): string | undefined {
  const count = done.tokenIds.length;
  const versioned = done.versions.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  if (count > sampling.maxNewTokens) return `${count} tokens where ${sampling.maxNewTokens} were asked for`;
  if (done.logprobs.length !== count) return `${done.logprobs.length} logprobs of ${count} tokens`;
  if (!done.logprobs.every((logprob) => Number.isFinite(logprob)))
    return "a logprob that is not a finite number";
  if (versioned !== count) return `versions of ${versioned} tokens where there are ${count}`;
  const generationMs = done.prefillMs + done.decodeMs;
  return generationMs >= 0 && Number.isFinite(generationMs) ? undefined : `${generationMs} ms of work`;
}

/** Why another try may succeed. @throws when none can. */
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
      // Includes reasons that only a newer gateway knows.
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
    ...(call.maxStaleness !== undefined && { maxStaleness: call.maxStaleness }),
    ...(call.onNewVersion !== undefined && { onNewVersion: onNewVersionToWire(call.onNewVersion) }),
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
