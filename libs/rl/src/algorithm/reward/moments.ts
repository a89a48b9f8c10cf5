/**
 * Mean and deviation of all rewards so far, batch by batch (Chan et al., "Updating Formulae and a Pairwise Algorithm for
 * Computing Sample Variances", 1979): the running normalisation that ROLL offers beside those of batch and group.
 */

/** What is known of the numbers so far. */
export interface Moments {
  readonly count: number;
  readonly mean: number;
  /** Sum of the squared distances from the mean. */
  readonly squares: number;
}

export const NO_MOMENTS: Moments = { count: 0, mean: 0, squares: 0 };

/** The moments with a batch more. */
export function addBatch(moments: Moments, batch: readonly number[]): Moments {
  const added = batch.length;
  const count = moments.count + added;
  if (added === 0) return moments;
  const mean = batch.reduce((total, value) => total + value, 0) / added;
  const squares = batch.reduce((total, value) => total + (value - mean) ** 2, 0);
  const distance = mean - moments.mean;
  return {
    count,
    mean: moments.mean + (distance * added) / count,
    squares: moments.squares + squares + (distance ** 2 * moments.count * added) / count,
  };
}

/** The sample deviation (divisor n - 1); 0 of fewer than two numbers. */
export function stdOf({ count, squares }: Moments): number {
  return count < 2 ? 0 : Math.sqrt(squares / (count - 1));
}
