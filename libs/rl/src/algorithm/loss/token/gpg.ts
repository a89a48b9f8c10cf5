/**
 * Group policy gradient (https://arxiv.org/abs/2504.02546): the formula of REINFORCE,
 *
 *   l = -A log pi(token)
 *
 * under the name that it has in verl; what is special to the method is its advantage (`advantage.kind: gpg`).
 */

import { definePolicyLoss } from "../loss.ts";
import { reinforce } from "./reinforce.ts";

export const gpg = definePolicyLoss({ ...reinforce, name: "gpg" });
