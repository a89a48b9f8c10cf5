/** Some of Hone's losses written as a user would write one, to be asked of the engines with the same golden cases. */

import { type Expression, type TokenNumber, tokenNumbers } from "../../../loss/expression.ts";
import type { LossConstants } from "../../../loss/loss.ts";
import type { LossTask } from "./loss-row.ts";

const { logprob, behaviourLogprob, advantage } = tokenNumbers();
const ratio = logprob.minus(behaviourLogprob).exp();
const gain = ratio.times(advantage);
const isGood = advantage.isAbove(0);

const WRITTEN: Readonly<Record<string, (constants: LossConstants) => TokenNumber>> = {
  ppo_clip: ({ clipLow, clipHigh, dualClip }) => {
    const least = gain.min(ratio.clip(1 - clipLow!, 1 + clipHigh!).times(advantage));
    if (dualClip === undefined) return least.negated();
    const isBad = advantage.negated().isAbove(0);
    const bounded = isBad
      .times(least.max(advantage.times(dualClip)))
      .plus(isBad.negated().plus(1).times(least));
    return bounded.negated();
  },
  sapo: ({ tauPositive, tauNegative }) => {
    const gate = (tau: number) =>
      ratio
        .minus(1)
        .times(tau)
        .sigmoid()
        .times(4 / tau);
    const weight = isGood.times(gate(tauPositive!)).plus(isGood.negated().plus(1).times(gate(tauNegative!)));
    return weight.times(advantage).negated();
  },
  dro: ({ beta }) => {
    const distance = logprob.minus(behaviourLogprob);
    return distance
      .times(distance)
      .times(beta! / 2)
      .minus(advantage.times(logprob));
  },
  tis: ({ lower, upper }) => ratio.clip(lower!, upper!).detached().times(advantage).times(logprob).negated(),
};

/** @returns undefined where the loss is not written here, or takes tokens together. */
export function asExpression(task: LossTask): LossTask | undefined {
  const [term, ...others] = task.terms;
  if (others.length > 0 || term === undefined || "bySegment" in term.constants) return undefined;
  const expression: Expression | undefined = WRITTEN[term.name]?.(term.constants).expression;
  if (expression === undefined) return undefined;
  return { ...task, terms: [{ name: "module", constants: {}, expression }] };
}
