/** Which trained tokens a loss takes together: those of a sample, or of a segment, an unbroken run of them in a sample. */

import type { GroupInput } from "../algorithm/loss/token-numbers.ts";
import type { MaskedTokens } from "../rollout.ts";

/** [N] the number of each trained token's group, from 0, over all samples in the order of (sample, token). */
export function groupsOf(samples: readonly Pick<MaskedTokens, "lossMask">[], kind: GroupInput): Float32Array {
  const groups: number[] = [];
  let segment = -1;
  samples.forEach(({ lossMask }, sample) => {
    for (let i = 0; i < lossMask.length; i++) {
      if (lossMask[i] !== 1) continue;
      if (lossMask[i - 1] !== 1) segment++;
      groups.push(kind === "sequence" ? sample : segment);
    }
  });
  return Float32Array.from(groups);
}

/** The same groups with numbers from 0 in the order in which they come first: all are below the number of tokens. */
export function renumber(groups: Float32Array): Float32Array {
  const numbers = new Map<number, number>();
  return groups.map((group) => {
    const number = numbers.get(group) ?? numbers.size;
    numbers.set(group, number);
    return number;
  });
}

/** [N] the mean of the numbers of each token's group. */
export function groupMeans(values: ArrayLike<number>, groups: ArrayLike<number>): Float64Array {
  const totals = new Map<number, { sum: number; count: number }>();
  Array.from(groups).forEach((group, token) => {
    const { sum, count } = totals.get(group) ?? { sum: 0, count: 0 };
    totals.set(group, { sum: sum + values[token]!, count: count + 1 });
  });
  return Float64Array.from(groups, (group) => {
    const { sum, count } = totals.get(group)!;
    return sum / count;
  });
}
