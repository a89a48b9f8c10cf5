/** The type of a loss graph, which computes one number for every trained token (an entry). Letters: E entries. */

import type { ConstantsOf, GroupInput, InputsOf, LossName, ScoreOf } from "@hone/rl";
import type { Tensor } from "@hone/tensor";

/**
 * The inputs of the loss `N`, each [E], and what the trained head says of the entry: its log-probability, or its value.
 * Numbers of groups, of which there are at most E, are there where the loss takes entries together.
 */
export type LossInputs<N extends LossName> = Readonly<Record<ScoreOf<N> | InputsOf<N>, Tensor>> &
  Readonly<Partial<Record<GroupInput, Tensor>>>;

/** Builds the loss of every entry, [E]. The caller multiplies it by the entries' weights and adds it up. */
export type LossGraph<N extends LossName> = (inputs: LossInputs<N>, constants: ConstantsOf<N>) => Tensor;
