/** The rules of the port that every engine refuses in the same way. */

import { InvalidRequestError } from "./errors.ts";
import { type GenerateRequest, MAX_TOP_LOGPROBS } from "./inference-engine.ts";

/** Logits divided by more than this are all alike. */
const MAX_TEMPERATURE = 100;
/** Beyond, only tokens that are new to the text are left. */
const MAX_REPETITION_PENALTY = 100;

/** @throws {InvalidRequestError} that names the first rule broken. */
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
      `must lie in [0, ${MAX_TEMPERATURE}]`,
    ],
    ["sampling.topP", sampling.topP, sampling.topP > 0 && sampling.topP <= 1, "must lie in (0, 1]"],
    ["sampling.topK", sampling.topK, isWhole(sampling.topK, 0), "must be a whole number from 0"],
    ["sampling.minP", sampling.minP, isWithin(sampling.minP ?? 0, 0, 1), "must lie in [0, 1]"],
    [
      "sampling.repetitionPenalty",
      sampling.repetitionPenalty,
      (sampling.repetitionPenalty ?? 1) > 0 && (sampling.repetitionPenalty ?? 1) <= MAX_REPETITION_PENALTY,
      `must lie in (0, ${MAX_REPETITION_PENALTY}]`,
    ],
    ...(["presencePenalty", "frequencyPenalty"] as const).map(
      (name) =>
        [
          `sampling.${name}`,
          sampling[name],
          isWithin(sampling[name] ?? 0, -2, 2),
          "must lie in [-2, 2]",
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
      "must be a whole number from 1",
    ],
    ["seed", seed, isWhole(seed, 0), "must be a non-negative safe integer"],
    [
      "versionRange",
      versionRange,
      isWhole(versionRange.lowest, 0) && versionRange.highest >= versionRange.lowest,
      "must run from a lowest version to one not below it",
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
