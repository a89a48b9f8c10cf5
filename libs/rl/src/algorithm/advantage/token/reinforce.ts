/**
 * The plain return (REINFORCE, Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
 * learning", 1992): every token is worth the rewards that follow it. Nothing is compared, so groups may be of one; the
 * normalisation of rewards takes the place of a baseline. Over whole trajectories with rewards of turns it is StarPO (Wang
 * et al., "RAGEN", 2025, https://arxiv.org/abs/2504.20073).
 *
 *   A_t = sum over k >= t of gamma^(k-t) r_k
 */

import { z } from "zod";
import { discountedReturns } from "../../returns.ts";
import { defineAdvantage } from "../advantage.ts";
import { partsOfRow } from "../parts.ts";
import {
  creditOption,
  readsRewardByCredit,
  rolloutAdvantageOf,
  tokenRowOf,
  turnKeyOfCredit,
} from "./token-row.ts";

export const reinforce = defineAdvantage({
  kind: "reinforce",
  options: {
    /** By how much a reward counts less with each sampled token that lies before it. */
    gamma: z.number().min(0).max(1).default(1),
    /** Which rewards are followed. */
    credit: creditOption,
  },
  comparesGroup: false,
  readsReward: readsRewardByCredit,
  turnKey: turnKeyOfCredit,
  compute: (step, { gamma, credit }) => ({
    groups: step.map(({ rollouts }) =>
      rollouts.map((rewarded) => {
        const row = tokenRowOf(rewarded, credit);
        return {
          ...rolloutAdvantageOf(row, rewarded.rollout, discountedReturns(row.rewards, gamma)),
          parts: partsOfRow(rewarded, row, credit, (rewards) => discountedReturns(rewards, gamma)),
        };
      }),
    ),
  }),
});
