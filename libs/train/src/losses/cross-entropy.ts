/** The graph of cross_entropy. */

import { Neg } from "@hone/tensor";
import type { LossGraph } from "./loss-graph.ts";

export const crossEntropy: LossGraph<"cross_entropy"> = ({ logprob }) => Neg(logprob);
