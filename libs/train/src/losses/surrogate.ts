/** The clipped surrogate that several losses share. */

import { Clip, Min, Mul, type Tensor } from "@hone/tensor";

/** min(r A, clip(r, 1 - low, 1 + high) A) for every entry. */
export function clippedSurrogate(
  ratio: Tensor,
  advantage: Tensor,
  { clipLow, clipHigh }: { readonly clipLow: number; readonly clipHigh: number },
): Tensor {
  const clipped = Clip(ratio, 1 - clipLow, 1 + clipHigh);
  return Min(Mul(ratio, advantage), Mul(clipped, advantage));
}
