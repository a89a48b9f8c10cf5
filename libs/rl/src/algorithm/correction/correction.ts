/**
 * Rollout correction: what a token counts for where it was sampled with other probabilities than the training engine computes.
 *
 * `weights.ts` has the importance weights, `rejection.ts` and `veto.ts` what is left out, `mismatch.ts` the figures that show
 * whether a run needs any of it. Each part can be used alone. Weights are those of all tokens, the rejected ones included, as
 * a rejection changes no weight; the loss of a token is multiplied by weight and kept.
 */

import { z } from "zod";
import { mismatchFigures } from "./mismatch.ts";
import { type Kept, rejectedFigures, rejectionsSchema, rejectTokens } from "./rejection.ts";
import type { Figures } from "./summary.ts";
import type { ComparedTokens } from "./tokens.ts";
import { vetoSamples, vetoSchema } from "./veto.ts";
import { weighTokens, weightSchema } from "./weights.ts";

/** The policy that the ratios of the loss refer to. Fixed vocabulary of the run file. */
export const OldPolicy = { recomputed: "recomputed", rollout: "rollout" } as const;
export type OldPolicy = (typeof OldPolicy)[keyof typeof OldPolicy];

/** `algorithm.correction`: how rollouts are corrected that were sampled with other probabilities than those that are trained. */
export const correctionSchema = z
  .strictObject({
    /** What the loss takes as the old policy: log-probabilities that the training engine computes, or those of the sampling. */
    old: z.enum(OldPolicy).default(OldPolicy.recomputed),
    /** Importance weights; absent = every token weighs 1. */
    weight: weightSchema.optional(),
    /** What is left out; a token must pass all of them. */
    reject: rejectionsSchema,
    /** Samples are left out that have a token with a ratio below this; null = none. */
    veto: vetoSchema,
  })
  .check(({ value: { old, weight }, issues }) => {
    if (old === OldPolicy.recomputed || weight === undefined) return;
    // The ratio of the loss is then the weight already.
    const message = `left out where old is ${OldPolicy.rollout}`;
    issues.push({ code: "custom", input: weight, path: ["weight"], message });
  });

export type CorrectionConfig = z.output<typeof correctionSchema>;

export interface CorrectedTokens {
  /** [N] the weight of each sampled token. */
  readonly weights: Float64Array;
  /** [N] 1 = trained, 0 = rejected. */
  readonly kept: Uint8Array;
  /** Figures, shown as `correction/<name>`; none where nothing was sampled. */
  readonly metrics: Figures;
}

/** Corrects the tokens of a step. */
export function correctTokens(
  tokens: ComparedTokens,
  { weight, reject, veto }: Omit<CorrectionConfig, "old">,
): CorrectedTokens {
  const count = tokens.logRatios.length;
  const weighed = weight && weighTokens(tokens, weight);
  const rejections: Kept[] = reject.map((options) => rejectTokens(tokens, options));
  if (veto !== null) rejections.push(vetoSamples(tokens, veto));
  const kept = new Uint8Array(count).fill(1);
  for (const rejection of rejections) {
    for (let token = 0; token < count; token++) kept[token]! &= rejection.kept[token]!;
  }
  const isRejecting = rejections.length > 0 && count > 0;
  return {
    weights: weighed?.weights ?? new Float64Array(count).fill(1),
    kept,
    metrics: Object.assign(
      {},
      mismatchFigures(tokens),
      weighed?.figures,
      ...rejections.map(({ figures }) => figures),
      isRejecting && rejectedFigures("rejected", kept, tokens),
    ) as Figures,
  };
}
