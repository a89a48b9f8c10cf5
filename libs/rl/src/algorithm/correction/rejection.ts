/**
 * Rejection of what was sampled too differently from what the training engine computes ("masked importance sampling",
 * https://richardli.xyz/rl-collapse). A token is kept where
 *
 *   lower <= measure of its unit <= upper
 *
 * for each of the rejections that a run names. The unit is the token, its turn or its sample (level.ts), so that a whole
 * sample can be rejected for the sum, the mean or the largest of its tokens' divergences.
 */

import { z } from "zod";
import { Level, type Pooled, pool, spreadOver } from "./level.ts";
import { Measure, measureUnits, neutralOf } from "./measure.ts";
import { type Figures, meanValue, outsideFigures, rangeFigures, sampleFigures, shareOf } from "./summary.ts";
import type { ComparedTokens } from "./tokens.ts";

const rejectionSchema = z
  .strictObject({
    /** What is bounded. */
    measure: z.enum(Measure),
    /** Over which tokens it is taken; those are kept or rejected together. */
    level: z.enum(Level).default(Level.token),
    /** The smallest value that is kept; null = any. */
    lower: z.number().nullable().default(null),
    /** The largest value that is kept; null = any. */
    upper: z.number().nullable().default(null),
  })
  .check(({ value: { lower, upper }, issues }) => {
    const report = (key: string, input: unknown, message: string) =>
      issues.push({ code: "custom", input, path: [key], message });
    if (lower === null && upper === null)
      report("upper", upper, "a number here or in lower, or nothing is rejected");
    else if (lower !== null && upper !== null && lower > upper)
      report("lower", lower, `a number of at most upper, which is ${upper}`);
  });

/** The option `correction.reject`: verl's rollout_rs with its thresholds, ROLL's filters. */
export const rejectionsSchema = z
  .array(rejectionSchema)
  .check(({ value, issues }) => {
    value.forEach((rejection, at) => {
      const first = value.findIndex((each) => nameOf(each) === nameOf(rejection));
      if (first === at) return;
      const message = `another measure or level than entry ${first} has, which can have both bounds`;
      issues.push({ code: "custom", input: rejection.measure, path: [at, "measure"], message });
    });
  })
  .default([]);
export type RejectionOptions = z.output<typeof rejectionSchema>;

export interface Kept {
  /** [N] 1 = kept, 0 = rejected. */
  readonly kept: Uint8Array;
  readonly figures: Figures;
}

/** Applies one rejection. */
export function rejectTokens(tokens: ComparedTokens, options: RejectionOptions): Kept {
  const units = measureUnits(options.measure, options.level, tokens);
  const { lower, upper } = options;
  const isOutside = (value: number) => (lower !== null && value < lower) || (upper !== null && value > upper);
  const kept = Uint8Array.from(units.unitOf, (unit) => (isOutside(units.values[unit]!) ? 0 : 1));
  if (kept.length === 0) return { kept, figures: {} };
  const name = nameOf(options);
  return {
    kept,
    figures: {
      ...figuresOf(name, tokens, units, options),
      ...rejectedFigures(`rejected/${name}`, kept, tokens),
    },
  };
}

/** Shares of the tokens that are rejected, and of the samples in which one is. */
export function rejectedFigures(
  name: string,
  kept: Uint8Array,
  tokens: Pick<ComparedTokens, "sequences" | "segments">,
): Figures {
  const rejected = Float64Array.from(kept, (bit) => 1 - bit);
  return {
    [`${name}/share`]: meanValue(rejected),
    [`${name}/sample/share`]: shareOf(pool(rejected, Level.sequenceMax, tokens).values, (value) => value > 0),
  };
}

/** The name of a rejection in figures. */
function nameOf({ measure, level }: Pick<RejectionOptions, "measure" | "level">): string {
  return `${measure}_${level}`;
}

function figuresOf(name: string, tokens: ComparedTokens, units: Pooled, options: RejectionOptions): Figures {
  const ofTokens = spreadOver(units);
  const samples = pool(ofTokens, Level.sequenceMean, tokens).values;
  return {
    [`${name}/mean`]: meanValue(ofTokens),
    ...rangeFigures(name, units.values),
    ...outsideFigures(name, units.values, options),
    ...sampleFigures(`${name}/sample`, samples, neutralOf(options.measure)),
    ...outsideFigures(`${name}/sample`, samples, options),
  };
}
