/** The parameters of the distribution that tokens are sampled from: `rollout.sampling` of a run file, and what every model call carries. */

import { z } from "zod";
import { isInRange, numberIn, rangeRule } from "./number-range.ts";
import { SAMPLING_PARAMETERS, type SamplingParameter } from "./parameters.ts";

export type SamplingName = keyof typeof SAMPLING_PARAMETERS;

type OptionalName = {
  [Name in SamplingName]: (typeof SAMPLING_PARAMETERS)[Name] extends { isOptional: true } ? Name : never;
}[SamplingName];

/** A run's sampling; what is optional here changes nothing where it is absent. */
export type SamplingParameters = Readonly<Record<Exclude<SamplingName, OptionalName>, number>> &
  Readonly<Partial<Record<OptionalName, number>>>;

export const SAMPLING_NAMES = Object.keys(SAMPLING_PARAMETERS) as readonly SamplingName[];

export const samplingSchema = z.strictObject(
  mapParameters(({ range, inRunFiles = range, default: value }) => numberIn(inRunFiles).default(value)),
);

/** @returns an object with what `make` returns for each parameter. */
export function mapParameters<Value>(
  make: (parameter: SamplingParameter, name: SamplingName) => Value,
): Record<SamplingName, Value> {
  const made = SAMPLING_NAMES.map((name) => [name, make(SAMPLING_PARAMETERS[name], name)] as const);
  return Object.fromEntries(made) as Record<SamplingName, Value>;
}

/** A value out of its range, for a message. */
export interface BrokenSamplingRange<Name extends string> {
  readonly name: Name;
  readonly value: number | undefined;
  /** The end of a sentence, such as `must be from 0 to 1`. */
  readonly rule: string;
}

/** @returns the first value that is out of the range of every model call; undefined = all are in range. */
export function outOfRange<Name extends string>(
  parameters: Readonly<Record<Name, SamplingParameter>>,
  sampling: Readonly<Partial<Record<NoInfer<Name>, number>>>,
): BrokenSamplingRange<Name> | undefined {
  // Called for each request, so it makes no list of the entries.
  for (const name in parameters) {
    const { range, isOptional, default: value } = parameters[name];
    const given = sampling[name];
    const meant = given ?? (isOptional === true ? value : Number.NaN);
    if (!isInRange(meant, range)) return { name: name as Name, value: given, rule: rangeRule(range) };
  }
  return undefined;
}
