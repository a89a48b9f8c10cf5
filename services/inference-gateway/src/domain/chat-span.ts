/** The server's span of one generation, with the engine's phases as its children. */

import {
  Attr,
  AttrValue,
  type Context,
  contextOf,
  recordError,
  type Span,
  SpanKind,
  SpanName,
  startSpan,
} from "@hone/telemetry";
import type { EngineGeneration, GenerateRequest } from "./inference-engine.ts";

export interface ChatSpan {
  /** Context for the work of the generation, whose spans become children of this one. */
  readonly below: Context;
  /** Ends the span with the result. */
  done(result: EngineGeneration): void;
  failed(error: unknown): void;
}

/** @param parent the context of the request. */
export function startChatSpan(request: GenerateRequest, parent: Context, replica: string): ChatSpan {
  const startedAt = Date.now();
  const span = startSpan(SpanName.chat(request.model), {
    kind: SpanKind.SERVER,
    parent,
    startTime: startedAt,
  });
  if (span.isRecording()) span.setAttributes(requestAttributes(request, replica));
  return {
    below: contextOf(span, parent),
    done(result) {
      if (span.isRecording()) {
        span.setAttributes(resultAttributes(request, result));
        recordPhases(span, parent, startedAt, result);
      }
      span.end();
    },
    failed(error) {
      recordError(span, error);
      span.end();
    },
  };
}

function requestAttributes(request: GenerateRequest, replica: string) {
  const { sampling, versionRange } = request;
  return {
    [Attr.genAiOperation]: AttrValue.operationChat,
    [Attr.genAiProvider]: AttrValue.providerHone,
    [Attr.genAiRequestModel]: request.model,
    [Attr.genAiRequestTemperature]: sampling.temperature,
    [Attr.genAiRequestTopP]: sampling.topP,
    [Attr.genAiRequestTopK]: sampling.topK,
    [Attr.genAiRequestMaxTokens]: sampling.maxNewTokens,
    [Attr.genAiRequestSeed]: request.seed,
    [Attr.genAiConversationId]: request.sessionId,
    [Attr.groupId]: request.groupId,
    [Attr.policyVersionLowest]: versionRange.lowest,
    [Attr.policyVersionHighest]: versionRange.highest,
    [Attr.replica]: replica,
  };
}

function resultAttributes(request: GenerateRequest, result: EngineGeneration) {
  const { metrics } = result;
  const version = result.versions.at(-1)?.version;
  return {
    [Attr.genAiResponseFinishReasons]: [result.finishReason],
    [Attr.genAiInputTokens]: request.promptIds.length,
    [Attr.genAiOutputTokens]: result.tokenIds.length,
    [Attr.genAiCachedTokens]: metrics.cachedTokens,
    [Attr.queueMs]: metrics.queueMs,
    [Attr.prefillMs]: metrics.prefillMs,
    [Attr.decodeMs]: metrics.decodeMs,
    ...(version !== undefined && { [Attr.policyVersion]: version }),
  };
}

/** The phases follow each other and end now; the time before them was a wait for the version. */
function recordPhases(span: Span, parent: Context, startedAt: number, result: EngineGeneration): void {
  const below = contextOf(span, parent);
  const { queueMs, prefillMs, decodeMs } = result.metrics;
  let at = Math.max(startedAt, Date.now() - queueMs - prefillMs - decodeMs);
  for (const [name, tookMs] of [
    [SpanName.engineQueue, queueMs],
    [SpanName.enginePrefill, prefillMs],
    [SpanName.engineDecode, decodeMs],
  ] as const) {
    startSpan(name, { parent: below, startTime: at }).end(at + tookMs);
    at += tookMs;
  }
}
