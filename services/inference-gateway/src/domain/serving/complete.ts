/** Generates the choices of one completion at the same time, and reports their text while it is generated. */

import { DeadlineError, deriveSeed } from "@hone/core";
import { FinishReason } from "@hone/rl";
import type { Context } from "@hone/telemetry";
import { startChatSpan } from "../chat-span.ts";
import { EngineFailedError } from "../errors.ts";
import { countGeneration } from "../generation-metrics.ts";
import type { EngineSampling, GenerateRequest, InferenceEngine } from "../inference-engine.ts";
import { ChoiceText, type TextDelta, type TextToken } from "./choice-text.ts";
import type { ServedModel } from "./served-models.ts";

/** A request after all checks, with all defaults. */
export interface CompletionRequest {
  /** Unique among the requests in flight. */
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly numChoices: number;
  readonly sampling: EngineSampling;
  /** A non-negative safe integer, from which the seed of each choice is derived. */
  readonly seed: number;
  readonly stopTexts: readonly string[];
}

export interface Choice {
  readonly text: string;
  readonly tokens: readonly TextToken[];
  readonly finishReason: "stop" | "length";
  /** Number of sampled tokens, including those that are not part of the text. */
  readonly tokenCount: number;
  /** Tokens of the prompt whose keys and values were in the cache. */
  readonly cachedTokens: number;
}

export interface CompleteOptions {
  readonly engine: InferenceEngine;
  readonly model: ServedModel;
  readonly signal: AbortSignal;
  /** Parent of the spans. */
  readonly trace: Context;
  readonly replica: string;
  /** Called whenever a choice has more text; together these are the choice's text. */
  readonly onDelta?: (index: number, delta: TextDelta) => void;
  /** Called when a choice ends, after its last text. */
  readonly onEnd?: (index: number, choice: Choice) => void;
}

/** The default timeout of the OpenAI clients. */
export const COMPLETION_DEADLINE_MS = 600_000;
/** New generations use the newest version, and running ones move to each newer version. */
const ANY_VERSION = { lowest: 0, highest: Number.MAX_SAFE_INTEGER };

/**
 * @returns the choices in their order.
 * @throws the signal's reason when it aborts, and errors of the engine, which also end the other choices.
 */
export async function complete(request: CompletionRequest, options: CompleteOptions): Promise<Choice[]> {
  const giveUp = new AbortController();
  const signal = AbortSignal.any([options.signal, giveUp.signal]);
  let failure: unknown;
  const choices = await Promise.all(
    Array.from({ length: request.numChoices }, async (_, index) => {
      try {
        return await generateChoice(request, index, { ...options, signal });
      } catch (error) {
        failure ??= error;
        giveUp.abort(error);
        return undefined;
      }
    }),
  );
  options.signal.throwIfAborted();
  if (failure !== undefined) throw failure;
  return choices.filter((choice) => choice !== undefined);
}

async function generateChoice(
  request: CompletionRequest,
  index: number,
  options: CompleteOptions,
): Promise<Choice> {
  const { engine, model, signal, trace, replica, onDelta, onEnd } = options;
  const { tokenizer } = model.language;
  const { stopTokenIds } = request.sampling;
  const text = new ChoiceText({ tokenizer, stopTokenIds, stopTexts: request.stopTexts });
  const deltas: TextDelta[] = [];
  const add = (delta: TextDelta) => {
    if (delta.text === "" && delta.tokens.length === 0) return;
    deltas.push(delta);
    onDelta?.(index, delta);
  };
  const enough = new AbortController();
  const generation = generateRequestOf(request, index, model);
  const span = startChatSpan(generation, trace, replica);
  try {
    const result = await engine.generate(generation, {
      signal: AbortSignal.any([signal, enough.signal]),
      onTokens: (chunk) => {
        if (text.isStopped) return;
        add(text.push(chunk));
        if (text.isStopped) enough.abort();
      },
    });
    add(text.end());
    const finishReason = finishReasonOf(result.finishReason, text.isStopped, signal);
    countGeneration(result);
    span.done(result);
    const choice = {
      text: deltas.map((delta) => delta.text).join(""),
      tokens: deltas.flatMap((delta) => delta.tokens),
      finishReason,
      tokenCount: text.tokenCount,
      cachedTokens: result.metrics.cachedTokens,
    };
    onEnd?.(index, choice);
    return choice;
  } catch (error) {
    span.failed(error);
    throw error;
  }
}

function generateRequestOf(
  request: CompletionRequest,
  index: number,
  { engineModel }: ServedModel,
): GenerateRequest {
  const { id, promptIds, sampling, seed } = request;
  return {
    id: `${id}#${index}`,
    model: engineModel,
    promptIds,
    sampling,
    seed: deriveSeed(seed, index),
    sessionId: `${id}#${index}`,
    groupId: id,
    versionRange: ANY_VERSION,
    deadlineMs: COMPLETION_DEADLINE_MS,
  };
}

function finishReasonOf(
  reason: FinishReason,
  isTextStopped: boolean,
  signal: AbortSignal,
): Choice["finishReason"] {
  if (isTextStopped) return "stop";
  if (reason === FinishReason.stop || reason === FinishReason.length) return reason;
  signal.throwIfAborted();
  if (reason === FinishReason.deadline) throw new DeadlineError("the completion", COMPLETION_DEADLINE_MS);
  throw new EngineFailedError("The model was unloaded before the completion was finished");
}
