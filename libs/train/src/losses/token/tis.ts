/** The graph of tis; its formula and paper are in libs/rl/src/algorithm/loss/token/tis.ts. */

import { Clip } from "@hone/tensor";
import type { LossGraph } from "../loss-graph.ts";
import { ratioOf } from "../ratio.ts";
import { weightedPolicyGradient } from "./policy-gradient.ts";

export const tis: LossGraph<"tis"> = (inputs, constants) =>
  weightedPolicyGradient(Clip(ratioOf(inputs, constants), constants.lower, constants.upper), inputs);
