/**
 * The optimal token baseline for rollouts with tools (Li et al., 2026): tokens are compared that are as many sampled tokens
 * from the beginning, whatever tools and environments said between them. The formula is in `optimal-token-baseline.ts`.
 */

import { defineAdvantage } from "../advantage.ts";
import { againstOptimalBaselines, optimalBaselineOptions } from "./optimal-token-baseline.ts";
import { readsRewardByCredit, turnKeyOfCredit } from "./token-row.ts";

export const tirOptimalTokenBaseline = defineAdvantage({
  kind: "tir_optimal_token_baseline",
  options: optimalBaselineOptions,
  comparesGroup: true,
  readsSquares: true,
  readsReward: readsRewardByCredit,
  turnKey: turnKeyOfCredit,
  compute: (step, options) =>
    againstOptimalBaselines(step, options, ({ places }) => Array.from(places, (_, token) => token)),
});
