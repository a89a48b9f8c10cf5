/**
 * Returns that are whitened over all tokens of the step (REINFORCE++, Hu, 2025, https://arxiv.org/abs/2501.03262): the
 * step's mean is the baseline, so that groups may be of one.
 *
 *   A_t = whiten(sum over k >= t of gamma^(k-t) r_k)
 *
 * It is `reinforce` with whitening.
 */

import { defineAdvantage } from "../advantage.ts";
import { reinforce } from "./reinforce.ts";

export const reinforcePlusPlus = defineAdvantage({
  ...reinforce,
  kind: "reinforce_plus_plus",
  whitens: true,
});
