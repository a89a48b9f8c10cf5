/** Generate requests and replies between the wire and the port. */

import { create } from "@bufbuild/protobuf";
import { describeError, InvalidInputError } from "@hone/core";
import { onNewVersionFromWire, samplingFromWire } from "@hone/messaging";
import {
  type GenerateReply,
  GenerateReplySchema,
  GenerateError_Reason as Reason,
  FinishReason as WireFinishReason,
  type GenerateRequest as WireRequest,
} from "@hone/proto-gen/policy";
import { FinishReason } from "@hone/rl";
import {
  EngineBusyError,
  InvalidRequestError,
  VersionBehindError,
  VersionStaleError,
} from "../domain/errors.ts";
import type { EngineGeneration, GenerateRequest, TokenChunk } from "../domain/inference-engine.ts";

const FINISH_REASONS: Readonly<Record<FinishReason, WireFinishReason>> = {
  [FinishReason.stop]: WireFinishReason.STOP,
  [FinishReason.length]: WireFinishReason.LENGTH,
  [FinishReason.aborted]: WireFinishReason.ABORTED,
  // No engine looks for texts.
  [FinishReason.stopText]: WireFinishReason.STOP,
  // The caller stopped waiting at the same time: to it, the generation went away.
  [FinishReason.deadline]: WireFinishReason.ABORTED,
};

/**
 * @param id under which the engine knows the call.
 * @throws {InvalidRequestError} when the sampling parameters are missing.
 */
export function requestFromWire(message: WireRequest, id: string): GenerateRequest {
  const { sampling } = message;
  if (sampling === undefined) throw new InvalidRequestError("sampling", null, "must be given");
  return {
    id,
    model: message.model,
    promptIds: message.promptIds,
    sampling: { ...samplingFromWire(sampling), stopTokenIds: message.stopTokenIds },
    seed: Number(message.seed),
    sessionId: message.sessionId,
    groupId: message.groupId,
    versionRange: { lowest: message.lowestVersion, highest: message.highestVersion },
    ...(message.maxStaleness !== undefined && { maxStaleness: message.maxStaleness }),
    onNewVersion: onNewVersionFromWire(message.onNewVersion),
    deadlineMs: message.deadlineMs,
  };
}

export function doneReply(result: EngineGeneration): GenerateReply {
  const { metrics } = result;
  return create(GenerateReplySchema, {
    kind: {
      case: "done",
      value: {
        tokenIds: [...result.tokenIds],
        logprobs: [...result.logprobs],
        finishReason: FINISH_REASONS[result.finishReason],
        versions: [...result.versions],
        cachedTokens: metrics.cachedTokens,
        queueMs: metrics.queueMs,
        prefillMs: metrics.prefillMs,
        decodeMs: metrics.decodeMs,
      },
    },
  });
}

export function tokensReply(chunk: TokenChunk): GenerateReply {
  return create(GenerateReplySchema, {
    kind: { case: "tokens", value: { tokenIds: [...chunk.tokenIds], logprobs: [...chunk.logprobs] } },
  });
}

export function heartbeatReply(queuePosition: number): GenerateReply {
  return create(GenerateReplySchema, { kind: { case: "heartbeat", value: { queuePosition } } });
}

export function errorReply(error: unknown): GenerateReply {
  return create(GenerateReplySchema, {
    kind: { case: "error", value: { reason: reasonOf(error), message: describeError(error) } },
  });
}

function reasonOf(error: unknown): Reason {
  if (error instanceof InvalidInputError) return Reason.INVALID;
  if (error instanceof EngineBusyError) return Reason.BUSY;
  if (error instanceof VersionBehindError) return Reason.BEHIND;
  if (error instanceof VersionStaleError) return Reason.STALE;
  // Whatever else it is, another replica may do better.
  return Reason.UNAVAILABLE;
}
