/** Makes the domain's request from the parameters that both kinds of completions share. */

import { randomInt, randomUUID } from "node:crypto";
import { deriveSeed } from "@hone/core";
import { ApiRequestError } from "@hone/service-kit";
import {
  mapShaping,
  type ShapingName,
  type ShapingSnakeName,
  type ShapingValues,
} from "../domain/engine-parameters.ts";
import type { CompletionRequest } from "../domain/serving/complete.ts";
import type { SamplingDefaults } from "../domain/serving/sampling-defaults.ts";
import type { ServedModel } from "../domain/serving/served-models.ts";

export interface AskedSampling extends Readonly<Record<ShapingSnakeName, number | undefined>> {
  readonly n: number | undefined;
  readonly seed: number | undefined;
  readonly stop_token_ids: readonly number[] | undefined;
  readonly ignore_eos: boolean | undefined;
  readonly stop: string | readonly string[] | undefined;
}

export interface PromptParameters {
  readonly promptIds: readonly number[];
  /** Name of the parameter that the prompt came in. */
  readonly param: "messages" | "prompt";
  /** The limit that the request gives. */
  readonly maxNewTokens: { readonly param: string; readonly value: number } | undefined;
  /** The limit if neither the request nor the model gives one; undefined = the rest of the context. */
  readonly defaultNewTokens: number | undefined;
  readonly topLogprobs: number;
}

/** Range of the seeds that are drawn for requests without one, the largest that randomInt has. */
const SEED_RANGE = 2 ** 48 - 1;

/** @throws {ApiRequestError} when the prompt is empty, or the model's context has no room for it. */
export function planCompletion(
  { language }: ServedModel,
  sampling: AskedSampling,
  prompt: PromptParameters,
): CompletionRequest {
  const { promptIds, param, maxNewTokens, defaultNewTokens } = prompt;
  const room = language.maxContextTokens - promptIds.length;
  if (promptIds.length === 0) {
    throw new ApiRequestError(`${param} has no tokens; it must have at least one`, { param });
  }
  if (room < 1) {
    throw new ApiRequestError(
      `${param} has ${promptIds.length} tokens; it must have fewer than the model's context of ${language.maxContextTokens} tokens`,
      { param, apiCode: "context_length_exceeded" },
    );
  }
  if (maxNewTokens !== undefined && maxNewTokens.value > room) {
    throw new ApiRequestError(
      `${maxNewTokens.param} is ${maxNewTokens.value}; it must be at most ${room}, as the prompt has ${promptIds.length} of the ${language.maxContextTokens} tokens of the model's context`,
      { param: maxNewTokens.param, apiCode: "context_length_exceeded" },
    );
  }
  const { defaults } = language;
  const { n = 1, seed, stop = [] } = sampling;
  return {
    id: randomUUID(),
    promptIds,
    numChoices: n,
    sampling: {
      ...shapingOf(sampling, defaults),
      topLogprobs: prompt.topLogprobs,
      stopTokenIds: [
        ...(sampling.ignore_eos === true ? [] : language.stopTokenIds),
        ...(sampling.stop_token_ids ?? []),
      ],
      maxNewTokens: maxNewTokens?.value ?? Math.min(room, defaults.maxNewTokens ?? defaultNewTokens ?? room),
    },
    // Seeds of the API may be negative, but the engine's may not.
    seed: seed === undefined ? randomInt(SEED_RANGE) : deriveSeed(Math.abs(seed), Math.sign(seed)),
    stopTexts: typeof stop === "string" ? [stop] : stop,
  };
}

/** What a request leaves out is taken from the model's recommendations. */
function shapingOf(asked: AskedSampling, recommended: SamplingDefaults): ShapingValues {
  const defaults: Readonly<Partial<Record<ShapingName, number | undefined>>> = recommended;
  return mapShaping(({ snakeName, range, default: value }, name) =>
    Math.max(range.lowest, asked[snakeName] ?? defaults[name] ?? value),
  );
}
