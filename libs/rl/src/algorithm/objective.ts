/** What the updates of a run minimise: the terms that engines add up for each token. */

import { type KlConfig, klTerm } from "./kl/estimators.ts";
import { crossEntropy } from "./loss/cross-entropy.ts";
import type { Expression } from "./loss/expression.ts";
import type { LossTerm } from "./loss/loss.ts";
import { type ChosenLoss, chosenLoss, type LossConfig, type LossName } from "./loss/registry.ts";

/** What a step's updates minimise, beside the entropy bonus. */
export interface PolicyObjective extends Omit<ChosenLoss, "term"> {
  /** Added up for each token; the loss comes first. */
  readonly terms: readonly LossTerm<LossName>[];
}

/** The objective of a run. @param own what the user's module made, where the loss is one of the user's. */
export function policyObjective(config: LossConfig, kl: KlConfig, own?: Expression): PolicyObjective {
  const { term, ...loss } = chosenLoss(config, own);
  const distance = klTerm(kl);
  return { ...loss, terms: distance === undefined ? [term] : [term, distance] };
}

/** The objective of imitation. */
export const IMITATION_TERMS: readonly LossTerm<LossName>[] = [{ name: crossEntropy.name, constants: {} }];
