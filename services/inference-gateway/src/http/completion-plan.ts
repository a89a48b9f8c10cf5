/** From the parameters that both kinds of completions share to what the domain is asked for. */

import { randomInt, randomUUID } from "node:crypto";
import { deriveSeed } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";
import type { CompletionRequest } from "../domain/serving/complete.ts";
import type { ServedModel } from "../domain/serving/served-models.ts";

export interface SamplingParameters {
  readonly n: number | undefined;
  readonly temperature: number | undefined;
  readonly top_p: number | undefined;
  readonly top_k: number | undefined;
  readonly min_p: number | undefined;
  readonly repetition_penalty: number | undefined;
  readonly presence_penalty: number | undefined;
  readonly frequency_penalty: number | undefined;
  readonly seed: number | undefined;
  readonly stop_token_ids: readonly number[] | undefined;
  readonly ignore_eos: boolean | undefined;
  readonly stop: string | readonly string[] | undefined;
}

export interface PromptParameters {
  readonly promptIds: readonly number[];
  /** Name of the parameter that the prompt came in. */
  readonly param: "messages" | "prompt";
  /** What was asked for. */
  readonly maxNewTokens: { readonly param: string; readonly value: number } | undefined;
  /** Where neither the request nor the model says; undefined = what the context has room for. */
  readonly defaultNewTokens: number | undefined;
  readonly topLogprobs: number;
}

/** Seeds that are drawn for requests without one; randomInt has no larger range. */
const SEED_RANGE = 2 ** 48 - 1;

/** @throws {ApiRequestError} when the model's context has no room for it. */
export function planCompletion(
  { language }: ServedModel,
  sampling: SamplingParameters,
  prompt: PromptParameters,
): CompletionRequest {
  const { promptIds, param, maxNewTokens, defaultNewTokens } = prompt;
  const room = language.maxContextTokens - promptIds.length;
  if (promptIds.length === 0) {
    throw new ApiRequestError(
      `Cannot answer as ${param} must hold at least one token: current value is none`,
      {
        param,
      },
    );
  }
  if (room < 1) {
    throw new ApiRequestError(
      `Cannot answer as ${param} must leave room in the context of ${language.maxContextTokens} tokens: current value is ${promptIds.length} tokens`,
      { param, apiCode: "context_length_exceeded" },
    );
  }
  if (maxNewTokens !== undefined && maxNewTokens.value > room) {
    throw new ApiRequestError(
      `Cannot answer as ${maxNewTokens.param} must be at most ${room}, what ${promptIds.length} tokens of the prompt leave of the context: current value is ${maxNewTokens.value}`,
      { param: maxNewTokens.param, apiCode: "context_length_exceeded" },
    );
  }
  const { defaults } = language;
  const { n = 1, temperature = defaults.temperature ?? 1, seed, stop = [] } = sampling;
  return {
    id: randomUUID(),
    promptIds,
    numChoices: n,
    sampling: {
      temperature,
      topP: sampling.top_p ?? defaults.topP ?? 1,
      topK: Math.max(0, sampling.top_k ?? defaults.topK ?? 0),
      minP: sampling.min_p ?? defaults.minP ?? 0,
      repetitionPenalty: sampling.repetition_penalty ?? defaults.repetitionPenalty ?? 1,
      presencePenalty: sampling.presence_penalty ?? 0,
      frequencyPenalty: sampling.frequency_penalty ?? 0,
      topLogprobs: prompt.topLogprobs,
      stopTokenIds: [
        ...(sampling.ignore_eos === true ? [] : language.stopTokenIds),
        ...(sampling.stop_token_ids ?? []),
      ],
      maxNewTokens: maxNewTokens?.value ?? Math.min(room, defaults.maxNewTokens ?? defaultNewTokens ?? room),
    },
    // Seeds of the API may be negative; the engine's may not.
    seed: seed === undefined ? randomInt(SEED_RANGE) : deriveSeed(Math.abs(seed), Math.sign(seed)),
    stopTexts: typeof stop === "string" ? [stop] : stop,
  };
}
