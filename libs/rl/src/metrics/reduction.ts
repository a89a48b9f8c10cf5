/**
 * Numbers of a step, each with the one way in which partial values become one.
 *
 * A mean is weighted (by tokens, rollouts or updates, whatever the values are means over), so that the mean of parts
 * equals the mean of the whole.
 */

import { BrokenRecordError } from "../errors.ts";

/** How the values of one metric become one. */
export const Reduction = { mean: "mean", max: "max", min: "min", sum: "sum", last: "last" } as const;
export type Reduction = (typeof Reduction)[keyof typeof Reduction];

interface Accumulated {
  readonly reduction: Reduction;
  value: number;
  weight: number;
}

/** Gathers values by name and reduces them. */
export class MetricSet {
  readonly #metrics = new Map<string, Accumulated>();

  /**
   * Adds a value.
   * @param weight of a mean; ignored by the other reductions.
   * @throws {BrokenRecordError} when the name was added before with another reduction.
   */
  add(name: string, reduction: Reduction, value: number, weight = 1): void {
    const metric = this.#metrics.get(name);
    if (metric === undefined) {
      this.#metrics.set(name, {
        reduction,
        value: reduction === Reduction.mean ? value * weight : value,
        weight,
      });
      return;
    }
    if (metric.reduction !== reduction) {
      throw new BrokenRecordError(
        `the metric ${name} is reduced by ${metric.reduction}, and a value was added that reduces by ${reduction}`,
      );
    }
    metric.weight += weight;
    metric.value = combine(reduction, metric.value, value, weight);
  }

  /** One number per name, in the order in which the names came; a mean without weight is left out. */
  toRecord(): Record<string, number> {
    const entries: Array<[string, number]> = [];
    for (const [name, { reduction, value, weight }] of this.#metrics) {
      if (reduction !== Reduction.mean) entries.push([name, value]);
      else if (weight > 0) entries.push([name, value / weight]);
    }
    return Object.fromEntries(entries);
  }
}

function combine(reduction: Reduction, current: number, value: number, weight: number): number {
  switch (reduction) {
    case Reduction.mean:
      return current + value * weight;
    case Reduction.sum:
      return current + value;
    case Reduction.max:
      return Math.max(current, value);
    case Reduction.min:
      return Math.min(current, value);
    case Reduction.last:
      return value;
  }
}
