/** The sampling parameters of the engine: those of runs, and what only clients of the HTTP interface may ask for. */

import {
  SAMPLING_PARAMETERS,
  SamplingEffect,
  type SamplingName,
  type SamplingParameter,
  type SamplingParameters,
} from "@hone/rl";

const penalty = {
  default: 0,
  effect: SamplingEffect.logits,
  range: { lowest: -2, highest: 2 },
  isOptional: true,
} as const;

/** Parameters that shape the distribution; the number of tokens is asked for in other ways by each API. */
const { maxNewTokens, ...ofRuns } = SAMPLING_PARAMETERS;

export const SHAPING_PARAMETERS = {
  ...ofRuns,
  /** Subtracted from the logits of tokens that were sampled. */
  presencePenalty: { snakeName: "presence_penalty", ...penalty },
  /** Subtracted from the logit of a token as often as it was sampled. */
  frequencyPenalty: { snakeName: "frequency_penalty", ...penalty },
} as const satisfies Readonly<Record<string, SamplingParameter>>;

export const ENGINE_PARAMETERS = { ...SHAPING_PARAMETERS, maxNewTokens } as const;

type Shaping = typeof SHAPING_PARAMETERS;
export type ShapingName = keyof Shaping;
/** The names of the shaping parameters in requests. */
export type ShapingSnakeName = Shaping[ShapingName]["snakeName"];
/** The values of a call's shaping parameters. */
export type ShapingValues = Omit<SamplingParameters, "maxNewTokens"> &
  Readonly<Partial<Record<Exclude<ShapingName, SamplingName>, number>>>;

export const SHAPING_NAMES = Object.keys(SHAPING_PARAMETERS) as readonly ShapingName[];

type Make<Value> = (parameter: SamplingParameter & Shaping[ShapingName], name: ShapingName) => Value;

/** @returns an object with what `make` returns for each shaping parameter. */
export function mapShaping<Value>(make: Make<Value>): Record<ShapingName, Value> {
  const made = SHAPING_NAMES.map((name) => [name, make(SHAPING_PARAMETERS[name], name)] as const);
  return Object.fromEntries(made) as Record<ShapingName, Value>;
}

/** The same, by the names in requests. */
export function mapShapingBySnakeName<Value>(make: Make<Value>): Record<ShapingSnakeName, Value> {
  const made = mapShaping((parameter, name) => [parameter.snakeName, make(parameter, name)] as const);
  return Object.fromEntries(Object.values(made)) as Record<ShapingSnakeName, Value>;
}

/** @returns every shaping parameter by its name in requests, as inference servers take them. */
export function shapingRequest(values: ShapingValues): Record<ShapingSnakeName, number> {
  return mapShapingBySnakeName(({ default: value }, name) => values[name] ?? value);
}
