/**
 * Generalized advantage estimation with a critic, whitened over the step's tokens (PPO as in Schulman et al., 2015,
 * https://arxiv.org/abs/1506.02438). The formula is in `returns.ts`.
 *
 * Tokens that the model did not sample are passed over: V_(t+1) is the value of the next sampled token.
 */

import { z } from "zod";
import { BrokenRecordError } from "../../../errors.ts";
import { generalizedAdvantages } from "../../returns.ts";
import { defineAdvantage, type RewardedRollout } from "../advantage.ts";
import { partsOfRow } from "../parts.ts";
import {
  creditOption,
  inRowOrder,
  inSampleOrder,
  readsRewardByCredit,
  rolloutAdvantageOf,
  tokenRowOf,
  turnKeyOfCredit,
} from "./token-row.ts";

export const gae = defineAdvantage({
  kind: "gae",
  options: {
    /** By how much a reward counts less with each sampled token that lies before it. */
    gamma: z.number().min(0).max(1).default(1),
    /** How far an advantage looks past the critic: 1 = to the end, 0 = to the next token. */
    lambda: z.number().min(0).max(1).default(1),
    /** Which rewards are followed. */
    credit: creditOption,
  },
  comparesGroup: false,
  whitens: true,
  readsValues: true,
  readsReward: readsRewardByCredit,
  turnKey: turnKeyOfCredit,
  compute: (step, options) => ({
    groups: step.map(({ rollouts }) =>
      rollouts.map((rewarded) => {
        const row = tokenRowOf(rewarded, options.credit);
        const values = inRowOrder(row, valuesOf(rewarded));
        const { advantages, returns } = generalizedAdvantages(row.rewards, values, options);
        return {
          ...rolloutAdvantageOf(row, rewarded.rollout, advantages),
          returns: inSampleOrder(row, returns),
          parts: {
            ...partsOfRow(rewarded, row, options.credit, (rewards) => followed(rewards, options)),
            mean: inSampleOrder(row, takenOff(values, options)),
          },
        };
      }),
    ),
  }),
});

type Decay = Parameters<typeof generalizedAdvantages>[2];

/** [N] what rewards alone make of each token. */
function followed(rewards: Float64Array, decay: Decay): readonly number[] {
  return generalizedAdvantages(rewards, new Float64Array(rewards.length), decay).advantages;
}

/** [N] what the critic takes off at each token. */
function takenOff(values: Float64Array, decay: Decay): Float64Array {
  const { advantages } = generalizedAdvantages(new Float64Array(values.length), values, decay);
  return Float64Array.from(advantages, (each) => -each);
}

function valuesOf({ rollout, values }: RewardedRollout): ArrayLike<number> {
  if (values !== undefined) return values;
  const { task, index } = rollout.slot;
  throw new BrokenRecordError(
    `gae needs the values of a critic, and rollout ${index} of task ${task} has none`,
  );
}
