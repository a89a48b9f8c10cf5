/** What the updates of a run minimise: the terms that engines add up for each token. */

import { type KlConfig, klTerm } from "./kl/estimators.ts";
import { crossEntropy } from "./loss/cross-entropy.ts";
import type { LossTerm } from "./loss/loss.ts";
import { chosenLoss, type LossConfig, type LossName } from "./loss/registry.ts";

/** What a step's updates minimise, beside the entropy bonus. */
export interface PolicyObjective {
  /** Added up for each token; the loss comes first. */
  readonly terms: readonly LossTerm<LossName>[];
  /** Whether the loss holds back the gradient of a token with this ratio and advantage. */
  isClipped(ratio: number, advantage: number): boolean;
}

/** The objective of a run. */
export function policyObjective(config: LossConfig, kl: KlConfig): PolicyObjective {
  const { term, isClipped } = chosenLoss(config);
  const distance = klTerm(kl);
  return { terms: distance === undefined ? [term] : [term, distance], isClipped };
}

/** The objective of imitation. */
export const IMITATION_TERMS: readonly LossTerm<LossName>[] = [{ name: crossEntropy.name, constants: {} }];
