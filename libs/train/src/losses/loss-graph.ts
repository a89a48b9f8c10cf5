/** What the graph of a loss is: from the numbers of every trained token (an entry) to one number each. Letters: E entries. */

import type { ConstantsOf, InputsOf, LossName } from "@hone/rl";
import type { Tensor } from "@hone/tensor";

/** What the loss `N` reads, each [E]: the log-probability under the weights that are trained, and its inputs. */
export type LossInputs<N extends LossName> = Readonly<Record<"logprob" | InputsOf<N>, Tensor>>;

/** Builds the loss of every entry, [E]. Weights, which carry the aggregation, and the sum are applied outside. */
export type LossGraph<N extends LossName> = (inputs: LossInputs<N>, constants: ConstantsOf<N>) => Tensor;
