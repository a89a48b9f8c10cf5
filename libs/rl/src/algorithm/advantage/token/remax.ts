/**
 * The reward of a greedy answer is the baseline (ReMax, Li et al., 2023, https://arxiv.org/abs/2310.10505): what the model
 * would have earned with its most likely tokens.
 *
 *   A_t = sum over k >= t of r_k - r_greedy
 *
 * Nothing is compared within a group, so groups may be of one. Where the greedy rollout has no reward, as it failed for a reason
 * outside the agent, the mean of the group's rewards takes its place.
 */

import { BrokenRecordError } from "../../../errors.ts";
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

export const remax = defineAdvantage({
  kind: "remax",
  options: {
    /** Which rewards are followed. */
    credit: creditOption,
  },
  comparesGroup: false,
  playsBaseline: true,
  readsReward: readsRewardByCredit,
  turnKey: turnKeyOfCredit,
  compute: (step, { credit }) => ({
    groups: step.map(({ task, rollouts, baselineReward }) => {
      if (baselineReward === undefined)
        throw new BrokenRecordError(`remax needs a greedy rollout of task ${task}, and there is none`);
      return rollouts.map((rewarded) => {
        const row = tokenRowOf(rewarded, credit);
        const returns = discountedReturns(row.rewards, 1);
        const advantages = returns.map((each) => each - baselineReward);
        return {
          ...rolloutAdvantageOf(row, rewarded.rollout, advantages),
          parts: {
            ...partsOfRow(rewarded, row, credit, (rewards) => discountedReturns(rewards, 1)),
            mean: baselineReward,
          },
        };
      });
    }),
  }),
});
