/** The rules for requests that are the same for every engine. */

import { outOfRange } from "@hone/rl";
import { ENGINE_PARAMETERS } from "./engine-parameters.ts";
import { InvalidRequestError } from "./errors.ts";
import { type GenerateRequest, MAX_TOP_LOGPROBS } from "./inference-engine.ts";

/** @throws {InvalidRequestError} that names the first broken rule. */
export function checkRequest(request: GenerateRequest): void {
  const { sampling, seed, versionRange, deadlineMs, promptIds } = request;
  const broken = outOfRange(ENGINE_PARAMETERS, sampling);
  if (broken !== undefined) {
    throw new InvalidRequestError(`sampling.${broken.name}`, broken.value, broken.rule);
  }
  const rules: readonly (readonly [path: string, value: unknown, isKept: boolean, rule: string])[] = [
    ["id", request.id, request.id !== "", "must not be empty"],
    ["model", request.model, request.model !== "", "must not be empty"],
    ["promptIds.length", promptIds.length, promptIds.length > 0, "must be at least 1"],
    [
      "sampling.topLogprobs",
      sampling.topLogprobs,
      isWhole(sampling.topLogprobs ?? 0, 0) && (sampling.topLogprobs ?? 0) <= MAX_TOP_LOGPROBS,
      `must be a whole number from 0 to ${MAX_TOP_LOGPROBS}`,
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

/**
 * @param maxContextTokens the model's longest sequence, prompt and answer together.
 * @returns why a model cannot take the prompt; undefined if it can.
 */
export function promptRefusal(
  { promptIds }: Pick<GenerateRequest, "promptIds">,
  {
    maxContextTokens,
    vocabularySize,
  }: { readonly maxContextTokens: number; readonly vocabularySize: number },
): InvalidRequestError | undefined {
  if (promptIds.length === 0 || promptIds.length >= maxContextTokens) {
    const rule = `must hold 1 to ${maxContextTokens - 1} tokens`;
    return new InvalidRequestError("promptIds.length", promptIds.length, rule);
  }
  const stranger = promptIds.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabularySize));
  if (stranger === undefined) return undefined;
  return new InvalidRequestError("promptIds", stranger, `must hold only token ids below ${vocabularySize}`);
}

function isWhole(value: number, lowest: number): boolean {
  return Number.isSafeInteger(value) && value >= lowest;
}
