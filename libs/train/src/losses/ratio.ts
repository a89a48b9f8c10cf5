/** Ratios of probabilities, of entries and of groups of entries. Letters: E entries. */

import { MAX_LOG_RATIO } from "@hone/rl";
import {
  Add,
  Cast,
  Clip,
  Div,
  Exp,
  GatherElements,
  Max,
  ScatterElements,
  Sub,
  type Tensor,
  ZerosLike,
} from "@hone/tensor";

/** log(probability / other probability) within the bounds in which its exponential is finite. */
export function boundedLogRatio(logprob: Tensor, other: Tensor): Tensor {
  return bounded(Sub(logprob, other));
}

export function bounded(logRatio: Tensor): Tensor {
  return Clip(logRatio, -MAX_LOG_RATIO, MAX_LOG_RATIO);
}

/** What {@link ratioOf} reads. */
export interface RatioInputs {
  readonly logprob: Tensor;
  readonly behaviourLogprob: Tensor;
  readonly segment?: Tensor;
}

/** [E] the ratio of each entry, or that of its segment where the constant `bySegment` asks for it. */
export function ratioOf(
  { logprob, behaviourLogprob, segment }: RatioInputs,
  { bySegment }: { readonly bySegment?: number },
): Tensor {
  if (bySegment === undefined) return Exp(boundedLogRatio(logprob, behaviourLogprob));
  return Exp(bounded(groupMean(Sub(logprob, behaviourLogprob), segment!)));
}

/**
 * [E] the mean of each entry's group.
 * @param x [E]
 * @param group [E] number of each entry's group, from 0 and below E, in the type of `x`
 */
export function groupMean(x: Tensor, group: Tensor): Tensor {
  const index = Cast(group, "int64");
  const zeros = ZerosLike(x);
  const sums = ScatterElements(zeros, index, x, 0, "add");
  const counts = ScatterElements(zeros, index, Add(zeros, 1), 0, "add");
  // There are fewer groups than entries: the other places hold no entry.
  return GatherElements(Div(sums, Max(counts, 1)), index, 0);
}
