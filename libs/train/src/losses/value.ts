/** The graph of a critic's loss; its formula is in libs/rl/src/algorithm/loss/value.ts. */

import { Add, Max, Min, Mul, Sub, type Tensor } from "@hone/tensor";
import type { LossGraph } from "./loss-graph.ts";

export const value: LossGraph<"value"> = ({ value: found, oldValue, return: target }, { clip }) => {
  const plain = squaredDistance(found, target);
  if (clip === undefined) return Mul(plain, 1 / 2);
  const near = Max(Min(found, Add(oldValue, clip)), Sub(oldValue, clip));
  return Mul(Max(plain, squaredDistance(near, target)), 1 / 2);
};

function squaredDistance(a: Tensor, b: Tensor): Tensor {
  const distance = Sub(a, b);
  return Mul(distance, distance);
}
