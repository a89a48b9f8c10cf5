/**
 * What a token adds to the gradient: the derivative of the loss with respect to its log-probability, from the numbers that the
 * engines return. It is for the record of trained tokens; engines differentiate their own graphs, and the two are compared in
 * `libs/train/src/losses/conformance.test.ts`. Each loss states its slope beside its formula.
 */

import { groupMeans } from "../../packing/groups.ts";
import { slopeAt } from "./expression.ts";
import type { LossConstants, LossTerm, TokenFigures, TokenLoss } from "./loss.ts";
import { LOSSES, type LossName } from "./registry.ts";
import type { TokenInput } from "./token-numbers.ts";

/** The tokens of samples that are trained together. N tokens. */
export interface SlopeTokens {
  /** [N] as {@link tokenFigures} makes them. */
  readonly figures: readonly TokenFigures[];
  /** [N] weight of each token in the loss. */
  readonly weights: ArrayLike<number>;
  /** [N] the group of each token, where a term takes them together. */
  readonly groups?: ArrayLike<number> | undefined;
}

/** @returns [N] d (sum over tokens of weight * term) / d log pi(token), for each term. */
export function slopesOfTerms(terms: readonly LossTerm<LossName>[], tokens: SlopeTokens): Float64Array[] {
  return terms.map((term) => slopesOfTerm(term, tokens));
}

function slopesOfTerm(
  { name, constants, expression }: LossTerm<LossName>,
  { figures, weights, groups }: SlopeTokens,
): Float64Array {
  // + 0: there is no -0 in the record.
  if (expression !== undefined) {
    return Float64Array.from(figures, (token, i) => slopeAt(expression, token) * weights[i]! + 0);
  }
  const loss = LOSSES[name] as unknown as TokenLoss<LossName, TokenInput, LossConstants>;
  const { slopesOfGroup, slope } = loss;
  if (slopesOfGroup !== undefined && loss.groupedBy?.(constants) !== undefined) {
    const slopes = new Float64Array(figures.length);
    for (const places of Map.groupBy(figures.keys(), (i) => groups![i]).values()) {
      const found = slopesOfGroup(
        places.map((i) => figures[i]!),
        places.map((i) => weights[i]!),
        constants,
      );
      places.forEach((place, i) => {
        slopes[place] = found[i]! + 0;
      });
    }
    return slopes;
  }
  if (slope === undefined) throw new TypeError(`the loss "${name}" is not a function of log-probabilities`);
  return Float64Array.from(figures, (token, i) => slope(token, constants) * weights[i]! + 0);
}

/** Numbers of tokens, [N] each, by name. */
export type TokenNumbers = Readonly<Partial<Record<TokenInput, ArrayLike<number>>>>;

/** The tokens one by one, as losses describe them. @param groups [N] the group of each token, where the loss takes them together. */
export function tokenFigures(
  logprobs: ArrayLike<number>,
  inputs: TokenNumbers,
  groups: ArrayLike<number> | undefined,
): TokenFigures[] {
  const { behaviourLogprob, advantage, reward, selected, referenceLogprob } = inputs;
  const logRatios = Array.from(logprobs, (logprob, i) => logprob - (behaviourLogprob?.[i] ?? logprob));
  const groupRatios = groups === undefined ? undefined : groupMeans(logRatios, groups).map(Math.exp);
  return logRatios.map((logRatio, i) => {
    const ratio = Math.exp(logRatio);
    return {
      ratio,
      groupRatio: groupRatios?.[i] ?? ratio,
      logprob: logprobs[i]!,
      behaviourLogprob: behaviourLogprob?.[i] ?? logprobs[i]!,
      advantage: advantage?.[i] ?? 0,
      reward: reward?.[i] ?? 0,
      isSelected: selected?.[i] === 1,
      ...(referenceLogprob !== undefined && { referenceLogprob: referenceLogprob[i]! }),
    };
  });
}
