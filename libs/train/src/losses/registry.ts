/** The graphs of all losses in the registry of `@hone/rl`. A loss without a graph does not compile. */

import { type ConstantsOf, inputsOf, type LossName, type LossTerm, scoreOf, type TokenInput } from "@hone/rl";
import { Add, type Tensor } from "@hone/tensor";
import { crossEntropy } from "./cross-entropy.ts";
import { expressionGraph } from "./expression.ts";
import { klAbs, klK1, klK2, klK3 } from "./kl.ts";
import type { LossGraph, LossInputs } from "./loss-graph.ts";
import { clipCov } from "./selected/clip-cov.ts";
import { klCov } from "./selected/kl-cov.ts";
import { gmpo } from "./sequence/gmpo.ts";
import { gspo } from "./sequence/gspo.ts";
import { cispo } from "./token/cispo.ts";
import { dppoKl, dppoTv } from "./token/dppo.ts";
import { ppoClip } from "./token/ppo-clip.ts";
import { reinforce } from "./token/reinforce.ts";
import { sapo } from "./token/sapo.ts";
import { dro, kimi15 } from "./token/squared-distance.ts";
import { tis } from "./token/tis.ts";
import { topr } from "./token/topr.ts";
import { value } from "./value.ts";

/** A loss of the user has none: its expression is its formula. */
const GRAPHS: { readonly [N in Exclude<LossName, "module">]: LossGraph<N> } = {
  ppo_clip: ppoClip,
  gspo,
  gmpo,
  sapo,
  cispo,
  dppo_tv: dppoTv,
  dppo_kl: dppoKl,
  dro,
  gpg: reinforce,
  clip_cov: clipCov,
  kl_cov: klCov,
  topr,
  tis,
  kimi15,
  reinforce,
  cross_entropy: crossEntropy,
  kl_k1: klK1,
  kl_abs: klAbs,
  kl_k2: klK2,
  kl_k3: klK3,
  value,
};

/**
 * Builds the sum of the terms for every entry, [E].
 * @param score [E] what the trained head says of each entry: log-probabilities or values, of which all terms are a function
 * @param input returns an input of the entries, [E]; it is called once for each input that a term reads
 */
export function buildTerms(
  terms: readonly LossTerm<LossName>[],
  score: Tensor,
  input: (name: TokenInput) => Tensor,
): Tensor {
  const read = Object.fromEntries(inputsOf(terms).map((name) => [name, input(name)]));
  const inputs = { [scoreOf(terms[0]!.name)]: score, ...read } as unknown as LossInputs<LossName>;
  return terms.map((term) => buildTerm(term, inputs)).reduce((sum, each) => Add(sum, each));
}

function buildTerm<N extends LossName>(
  { name, constants, expression }: LossTerm<N>,
  inputs: LossInputs<LossName>,
): Tensor {
  if (expression !== undefined) return expressionGraph(expression, inputs);
  return (GRAPHS[name as Exclude<N, "module">] as unknown as LossGraph<N>)(
    inputs as LossInputs<N>,
    constants as ConstantsOf<N>,
  );
}
