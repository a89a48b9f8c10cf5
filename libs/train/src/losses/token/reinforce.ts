/** The graphs of reinforce and gpg; the formula is in libs/rl/src/algorithm/loss/token/reinforce.ts. */

import type { LossGraph } from "../loss-graph.ts";
import { policyGradient } from "./policy-gradient.ts";

export const reinforce: LossGraph<"reinforce" | "gpg"> = (inputs) => policyGradient(inputs);
