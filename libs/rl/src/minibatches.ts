/**
 * Cutting a step into minibatches: whole groups, in order of their slots, as equal in number as possible.
 *
 * M1: a group is never divided, so that its shared prompt is computed once and its advantages stay balanced.
 * M2: the cut depends on the number of groups alone, never on arrival, lengths or time.
 */

/**
 * @param items groups in order of task.
 * @param count minibatches wanted, at least 1; with fewer groups there are as many minibatches as groups.
 */
export function splitMinibatches<T>(items: readonly T[], count: number): T[][] {
  const parts = Math.min(count, items.length);
  return Array.from({ length: parts }, (_, part) =>
    items.slice(Math.floor((part * items.length) / parts), Math.floor(((part + 1) * items.length) / parts)),
  );
}
