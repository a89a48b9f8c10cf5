/** Finds sampling parameters that break rule 5 at a server, or that it does not take. They are refused in runs and in calls. */

import { SamplingEffect } from "@hone/rl";
import {
  SHAPING_NAMES,
  SHAPING_PARAMETERS,
  type ShapingName,
  type ShapingValues,
} from "../domain/engine-parameters.ts";
import { type SamplingBounds, Scoring } from "./engine-server.ts";

export interface BrokenSamplingRule {
  readonly key: ShapingName;
  readonly value: number;
  readonly allowed: string;
}

/** Returns every broken rule. At temperature 0 the distribution is a point, whatever logprobs the server gives. */
export function brokenSamplingRules(
  sampling: ShapingValues,
  scoring: Scoring,
  bounds: SamplingBounds,
): BrokenSamplingRule[] {
  const { temperature, repetitionPenalty = 1 } = sampling;
  const broken: BrokenSamplingRule[] = [];
  const rule = (key: ShapingName, value: number, isKept: boolean, allowed: string) => {
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
  const ruleOut = (effect: SamplingEffect) => {
    for (const name of SHAPING_NAMES) {
      const { default: neutral, effect: own } = SHAPING_PARAMETERS[name];
      const value = sampling[name] ?? neutral;
      const allowed = name === "temperature" ? `${neutral} or 0` : `${neutral}`;
      if (own === effect) rule(name, value, value === neutral, `${allowed}, ${why}`);
    }
  };
  ruleOut(SamplingEffect.truncation);
  if (scoring === Scoring.raw) ruleOut(SamplingEffect.logits);
  return broken;
}
