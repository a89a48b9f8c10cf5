/** The rules for requests that are the same for every engine. */

import { InvalidRequestError } from "./errors.ts";
import { type GenerateRequest, MAX_TOP_LOGPROBS } from "./inference-engine.ts";

/** At a higher temperature all tokens are practically equally likely. */
const MAX_TEMPERATURE = 100;
/** Above this only tokens that are new to the text can be sampled. */
const MAX_REPETITION_PENALTY = 100;

/** @throws {InvalidRequestError} that names the first broken rule. */
export function checkRequest(request: GenerateRequest): void {
  const { sampling, seed, versionRange, deadlineMs, promptIds } = request;
  const rules: readonly (readonly [path: string, value: unknown, isKept: boolean, rule: string])[] = [
    ["id", request.id, request.id !== "", "must not be empty"],
    ["model", request.model, request.model !== "", "must not be empty"],
    ["promptIds.length", promptIds.length, promptIds.length > 0, "must be at least 1"],
    [
      "sampling.temperature",
      sampling.temperature,
      sampling.temperature >= 0 && sampling.temperature <= MAX_TEMPERATURE,
      `must be from 0 to ${MAX_TEMPERATURE}`,
    ],
    [
      "sampling.topP",
      sampling.topP,
      sampling.topP > 0 && sampling.topP <= 1,
      "must be above 0 and at most 1",
    ],
    ["sampling.topK", sampling.topK, isWhole(sampling.topK, 0), "must be a whole number of at least 0"],
    ["sampling.minP", sampling.minP, isWithin(sampling.minP ?? 0, 0, 1), "must be from 0 to 1"],
    [
      "sampling.repetitionPenalty",
      sampling.repetitionPenalty,
      (sampling.repetitionPenalty ?? 1) > 0 && (sampling.repetitionPenalty ?? 1) <= MAX_REPETITION_PENALTY,
      `must be above 0 and at most ${MAX_REPETITION_PENALTY}`,
    ],
    ...(["presencePenalty", "frequencyPenalty"] as const).map(
      (name) =>
        [
          `sampling.${name}`,
          sampling[name],
          isWithin(sampling[name] ?? 0, -2, 2),
          "must be from -2 to 2",
        ] as const,
    ),
    [
      "sampling.topLogprobs",
      sampling.topLogprobs,
      isWhole(sampling.topLogprobs ?? 0, 0) && (sampling.topLogprobs ?? 0) <= MAX_TOP_LOGPROBS,
      `must be a whole number from 0 to ${MAX_TOP_LOGPROBS}`,
    ],
    [
      "sampling.maxNewTokens",
      sampling.maxNewTokens,
      isWhole(sampling.maxNewTokens, 1),
      "must be a whole number of at least 1",
    ],
    ["seed", seed, isWhole(seed, 0), "must be a non-negative safe integer"],
    [
      "versionRange",
      versionRange,
      isWhole(versionRange.lowest, 0) && versionRange.highest >= versionRange.lowest,
      "must have a lowest version of at least 0 and a highest version that is not below it",
    ],
    ["deadlineMs", deadlineMs, deadlineMs > 0, "must be above 0"],
  ];
  for (const [path, value, isKept, rule] of rules) {
    if (!isKept) throw new InvalidRequestError(path, value, rule);
  }
}

function isWhole(value: number, lowest: number): boolean {
  return Number.isSafeInteger(value) && value >= lowest;
}

function isWithin(value: number, lowest: number, highest: number): boolean {
  return value >= lowest && value <= highest;
}
