/** Finds sampling parameters that break rule 5 at a server, or that it does not take. They are refused in runs and in calls. */

import type { EngineSampling } from "../domain/inference-engine.ts";
import { type SamplingBounds, Scoring } from "./engine-server.ts";

type Shape = Pick<EngineSampling, "temperature" | "topP" | "topK" | "minP"> & {
  readonly repetitionPenalty?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
};

export interface BrokenSamplingRule {
  readonly key: keyof Shape;
  readonly value: number;
  readonly allowed: string;
}

/** Returns every broken rule. At temperature 0 the distribution is a point, whatever logprobs the server gives. */
export function brokenSamplingRules(
  sampling: Shape,
  scoring: Scoring,
  bounds: SamplingBounds,
): BrokenSamplingRule[] {
  const { temperature, topP, topK, minP = 0, repetitionPenalty = 1 } = sampling;
  const { presencePenalty = 0, frequencyPenalty = 0 } = sampling;
  const broken: BrokenSamplingRule[] = [];
  const rule = (key: keyof Shape, value: number, isKept: boolean, allowed: string) => {
    if (!isKept) broken.push({ key, value, allowed });
  };
  const { minTemperature, maxTemperature, maxRepetitionPenalty } = bounds;
  rule(
    "temperature",
    temperature,
    temperature === 0 || (temperature >= minTemperature && temperature <= maxTemperature),
    `0, or ${minTemperature} to ${maxTemperature}, which the inference server takes`,
  );
  rule(
    "repetitionPenalty",
    repetitionPenalty,
    repetitionPenalty <= maxRepetitionPenalty,
    `at most ${maxRepetitionPenalty}, which the inference server takes`,
  );
  if (scoring === Scoring.processed || temperature === 0) return broken;
  const why = "as the inference server's logprobs do not include it";
  rule("topP", topP, topP === 1, `1, ${why}`);
  rule("topK", topK, topK === 0, `0, ${why}`);
  rule("minP", minP, minP === 0, `0, ${why}`);
  if (scoring === Scoring.tempered) return broken;
  rule("temperature", temperature, temperature === 1, `1 or 0, ${why}`);
  rule("repetitionPenalty", repetitionPenalty, repetitionPenalty === 1, `1, ${why}`);
  rule("presencePenalty", presencePenalty, presencePenalty === 0, `0, ${why}`);
  rule("frequencyPenalty", frequencyPenalty, frequencyPenalty === 0, `0, ${why}`);
  return broken;
}
