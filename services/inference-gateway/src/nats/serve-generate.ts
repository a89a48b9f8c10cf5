/**
 * Answers `hone.v1.policy.generate.<model>.<replica>`.
 *
 * R1: a call ends with exactly one `done` or `error`; until then the caller gets a message at least every heartbeat interval.
 * R2: tokens are sent while they are generated only to callers that ask for it.
 * R3: when this replica cuts a generation off because it stops, it answers that it is unavailable, so that the caller tries
 *     another replica, and gets the same tokens there.
 */

import {
  type Bus,
  type IncomingRequest,
  modelOfSubject,
  type Responder,
  respond,
  subjects,
} from "@hone/messaging";
import {
  type GenerateReply,
  GenerateReplySchema,
  GenerateRequestSchema,
  type GenerateRequest as WireRequest,
} from "@hone/proto-gen/policy";
import { FinishReason } from "@hone/rl";
import { Instrument, type Logger, observeMetric, runBelow } from "@hone/telemetry";
import { type ChatSpan, startChatSpan } from "../domain/chat-span.ts";
import { EngineFailedError, InvalidRequestError } from "../domain/errors.ts";
import { generateWhenLoaded } from "../domain/generate-when-loaded.ts";
import { countGeneration } from "../domain/generation-metrics.ts";
import type { EngineGeneration, InferenceEngine, TokenChunk } from "../domain/inference-engine.ts";
import type { PolicyKeeper } from "../domain/policy-keeper.ts";
import { doneReply, errorReply, heartbeatReply, requestFromWire, tokensReply } from "./generate-codec.ts";

export interface ServeGenerateOptions {
  readonly bus: Bus;
  readonly engine: InferenceEngine;
  readonly keeper: PolicyKeeper;
  readonly replica: string;
  readonly heartbeatMs: number;
  readonly versionWaitMs: number;
  readonly logger: Logger;
}

export interface GenerateServer {
  /** Takes no new request and waits for those that run; they are cut off when the signal aborts (R3). */
  drain(signal: AbortSignal): Promise<void>;
}

interface OpenCall {
  readonly model: string;
  readonly requestId: string;
  readonly lowestVersion: number;
  readonly controller: AbortController;
}

export function serveGenerate(options: ServeGenerateOptions): GenerateServer {
  const { bus, engine, keeper, replica, heartbeatMs, versionWaitMs, logger } = options;
  /** By the engine's id, in the order of arrival. */
  const open = new Map<string, OpenCall>();
  const stopping = new AbortController();
  const observing = observeOpenCalls(open);
  let calls = 0;

  const onError = (error: unknown, subject: string) =>
    logger.error("a generate request failed", { subject, error });
  const responder: Responder = respond(
    bus,
    subjects.generate("*", replica),
    GenerateRequestSchema,
    GenerateReplySchema,
    { handle: answer, onError },
  );
  const aborts = bus.connection.subscribe(subjects.abort("*", replica), {
    callback: (error, message) => {
      if (error !== null) return onError(error, subjects.abort("*", replica));
      const requestId = message.string();
      const model = modelOfSubject(message.subject);
      for (const call of open.values()) {
        if (call.requestId === requestId && call.model === model) call.controller.abort();
      }
    },
  });

  async function answer(incoming: IncomingRequest<WireRequest, GenerateReply>): Promise<void> {
    const { message, subject, trace, reply } = incoming;
    // A caller that tries again uses the same request id, perhaps before its first attempt has ended.
    const id = `${message.requestId}#${calls++}`;
    const controller = new AbortController();
    const { model, requestId, lowestVersion } = message;
    open.set(id, { model, requestId, lowestVersion, controller });
    // R1: each message restarts the interval.
    const heartbeat = setInterval(() => sendOnTheWay(heartbeatReply(queuePosition(id))), heartbeatMs);
    const send = async (answered: GenerateReply): Promise<void> => {
      heartbeat.refresh();
      await reply(answered);
    };
    const sendOnTheWay = (answered: GenerateReply): void => {
      send(answered).catch((error: unknown) => onError(error, subject));
    };
    let span: ChatSpan | undefined;
    try {
      const request = requestFromWire(message, id);
      span = startChatSpan(request, trace, replica);
      const options = {
        versionWaitMs,
        signal: AbortSignal.any([controller.signal, stopping.signal]),
        onTokens: message.isStreaming ? (chunk: TokenChunk) => sendOnTheWay(tokensReply(chunk)) : undefined,
      };
      // Calls of an inference server carry the trace of the context that they run in.
      const result = await runBelow(span.below, () => generateWhenLoaded(engine, keeper, request, options));
      checkNotCutOff(result, controller.signal);
      countGeneration(result);
      span.done(result);
      await send(doneReply(result));
    } catch (error) {
      if (!(error instanceof InvalidRequestError)) logger.debug("a generation was refused", { id, error });
      span?.failed(error);
      await send(errorReply(error));
    } finally {
      clearInterval(heartbeat);
      open.delete(id);
    }
  }

  /** R3 */
  function checkNotCutOff(result: EngineGeneration, asked: AbortSignal): void {
    if (result.finishReason === FinishReason.aborted && !asked.aborted) {
      throw new EngineFailedError("This replica is stopping and has cut the generation off");
    }
  }

  /** Number of calls that run before this one does, with itself; 0 when it runs. */
  function queuePosition(id: string): number {
    const { model } = open.get(id)!;
    let ahead = 0;
    for (const [other, call] of open) {
      if (other === id) break;
      if (call.model === model) ahead++;
    }
    const loaded = engine.capacity().models.find((known) => known.model === model);
    // Sequences start in the order in which they came.
    return loaded === undefined ? ahead + 1 : Math.max(0, ahead + 1 - loaded.running);
  }

  return {
    async drain(signal) {
      const cutOff = () => stopping.abort(signal.reason);
      signal.addEventListener("abort", cutOff, { once: true });
      if (signal.aborted) cutOff();
      try {
        await responder.drain();
        aborts.unsubscribe();
        observing[Symbol.dispose]();
      } finally {
        signal.removeEventListener("abort", cutOff);
      }
    },
  };
}

function observeOpenCalls(open: ReadonlyMap<string, OpenCall>): Disposable {
  return observeMetric(Instrument.generationsInFlight, () => {
    const counts = new Map<number, number>();
    for (const { lowestVersion } of open.values()) {
      counts.set(lowestVersion, (counts.get(lowestVersion) ?? 0) + 1);
    }
    return Array.from(counts, ([version, value]) => ({ labels: { policy_version: String(version) }, value }));
  });
}
