/**
 * Returns from turn to turn (ROLL's agentic_reinforce): all tokens of a turn are worth what the turn earned and what follows
 * it. Rewards count less with each turn, not with each token.
 *
 *   A_t = r_t + gamma A_(t+1)       t a turn
 *
 * Nothing is compared, so groups may be of one; the normalisation of rewards takes the place of a baseline.
 */

import { z } from "zod";
import { discountedReturns } from "../../returns.ts";
import { defineAdvantage } from "../advantage.ts";
import { partsOfRow } from "../parts.ts";
import {
  creditOption,
  readsRewardByCredit,
  rolloutAdvantageOf,
  type TokenRow,
  tokenRowOf,
  turnKeyOfCredit,
} from "../token/token-row.ts";

export const agenticReinforce = defineAdvantage({
  kind: "agentic_reinforce",
  options: {
    /** By how much a reward counts less with each turn that lies before it. */
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
          ...rolloutAdvantageOf(row, rewarded.rollout, segmentReturns(row, gamma)),
          parts: partsOfRow(rewarded, row, credit, (rewards) =>
            segmentReturns({ turns: row.turns, rewards }, gamma),
          ),
        };
      }),
    ),
  }),
});

/**
 * @param turns [N] the turn of each token.
 * @returns [N] the return of each token's turn, whose reward is the sum of those on its tokens.
 */
export function segmentReturns(
  { turns, rewards }: Pick<TokenRow, "turns" | "rewards">,
  gamma: number,
): number[] {
  const sums: number[] = [];
  const segments = Array.from(turns, (turn, token) => {
    if (token === 0 || turn !== turns[token - 1]) sums.push(0);
    sums[sums.length - 1] = sums.at(-1)! + rewards[token]!;
    return sums.length - 1;
  });
  const returns = discountedReturns(sums, gamma);
  return segments.map((segment) => returns[segment]!);
}
