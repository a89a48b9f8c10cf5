/**
 * Importance weights of tokens: by how much more likely the training engine finds what was sampled. With the log ratio
 * x = log old - log behaviour of a token, its turn or its sample (level.ts), where x counts within 20:
 *
 *   outside: clip   w = min(max(e^x, lower), upper)             truncated importance sampling, TIS (Ionides, 2008); of tokens
 *                                                               also https://fengyao.notion.site/off-policy-rl
 *   outside: zero   w = e^x where lower <= e^x <= upper, else 0  IcePop, https://arxiv.org/abs/2510.18855
 *
 * `normalize` divides by the mean of w over tokens, or over turns or samples where these have one weight each, so that the
 * step's weights have the mean 1. The loss of a token is multiplied by its weight, through which no gradient flows.
 */

import { z } from "zod";
import { Level, type Pooled, pool, spreadOver } from "./level.ts";
import { ratioOf } from "./measure.ts";
import {
  type Bounds,
  type Figures,
  meanValue,
  outsideFigures,
  rangeFigures,
  sampleFigures,
  shareOf,
} from "./summary.ts";
import type { ComparedTokens } from "./tokens.ts";

/** What becomes of a weight outside the bounds. Fixed vocabulary of the run file. */
export const OutsideBounds = { clip: "clip", zero: "zero" } as const;
export type OutsideBounds = (typeof OutsideBounds)[keyof typeof OutsideBounds];

/** A mean of weights at which a division says nothing: all of them are 0. */
const SMALLEST_SCALE = 1e-8;

/** The option `correction.weight`. */
export const weightSchema = z
  .strictObject({
    /** Over which tokens the log ratio is taken. verl: rollout_is; ROLL: is_weight.weight_type. */
    level: z
      .enum([Level.token, Level.segmentMean, Level.sequenceMean, Level.sequenceSum])
      .default(Level.token),
    /** The largest weight; null = none. verl: rollout_is_threshold; ROLL: is_weight.upper_bound. */
    upper: z.number().positive().nullable().default(2),
    /** The smallest weight. verl: the first number of rollout_is_threshold. */
    lower: z.number().min(0).default(0),
    /** Whether weights outside are brought to the bound or become 0. */
    outside: z.enum(OutsideBounds).default(OutsideBounds.clip),
    /** Whether weights are divided by their mean. verl: rollout_is_batch_normalize. */
    normalize: z.boolean().default(false),
  })
  .check(({ value: { lower, upper }, issues }) => {
    if (upper === null || lower <= upper) return;
    const message = `a number of at most upper, which is ${upper}`;
    issues.push({ code: "custom", input: lower, path: ["lower"], message });
  });
export type WeightOptions = z.output<typeof weightSchema>;

export interface Weights {
  /** [N] */
  readonly weights: Float64Array;
  readonly figures: Figures;
}

export function weighTokens(tokens: ComparedTokens, options: WeightOptions): Weights {
  const { values: logs, unitOf } = pool(tokens.logRatios, options.level, tokens);
  const ratios = logs.map(ratioOf);
  const bounded = ratios.map((ratio) => boundWeight(ratio, options));
  if (ratios.length === 0) return { weights: new Float64Array(0), figures: {} };
  const scale = options.normalize ? scaleOf(bounded) : 1;
  return {
    weights: spreadOver({ values: bounded.map((weight) => weight / scale), unitOf }),
    figures: {
      ...figuresOf(tokens, { values: ratios, unitOf }, { values: bounded, unitOf }, options),
      ...(options.normalize && { "weight/scale": scale }),
    },
  };
}

function boundWeight(ratio: number, { lower, upper, outside }: WeightOptions): number {
  const most = upper ?? Number.POSITIVE_INFINITY;
  if (outside === OutsideBounds.clip) return Math.max(lower, Math.min(most, ratio));
  return ratio < lower || ratio > most ? 0 : ratio;
}

function scaleOf(weights: Float64Array): number {
  const mean = meanValue(weights);
  return mean > SMALLEST_SCALE ? mean : 1;
}

/** The share of the tokens that equal weights would need for the same variance, (mean w)^2 / mean w^2 (Kish, 1965). */
function effectiveShare(weights: Float64Array): number {
  const square = meanValue(weights.map((weight) => weight * weight));
  return square === 0 ? 0 : meanValue(weights) ** 2 / square;
}

/** Figures of the weights before they are divided by their mean; high and low of the ratios before they are bounded. */
function figuresOf(
  tokens: ComparedTokens,
  ratioUnits: Pooled,
  weightUnits: Pooled,
  { lower, upper }: WeightOptions,
): Figures {
  const ratios = spreadOver(ratioUnits);
  const weights = spreadOver(weightUnits);
  const mean = meanValue(weights);
  // Without a lower bound, a ratio is low that is further below 1 than the upper bound is above it.
  const bounds: Bounds = { upper, lower: lower > 0 ? lower : upper === null ? null : 1 / upper };
  const samples = (values: Float64Array) => pool(values, Level.sequenceMean, tokens).values;
  return {
    "weight/mean": mean,
    "weight/std": Math.sqrt(meanValue(weights.map((weight) => (weight - mean) ** 2))),
    ...rangeFigures("weight", weights),
    ...rangeFigures("weight/unbounded", ratios),
    ...outsideFigures("weight", ratioUnits.values, bounds),
    "weight/cut/share": shareOf(ratios, (ratio, token) => ratio !== weights[token]),
    "weight/effective/share": effectiveShare(weights),
    ...sampleFigures("weight/sample", samples(weights), 1),
    ...outsideFigures("weight/sample", samples(ratios), bounds),
  };
}
