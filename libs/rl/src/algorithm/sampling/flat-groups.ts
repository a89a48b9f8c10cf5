/**
 * The filter of dynamic sampling (DAPO, Yu et al., 2025, https://arxiv.org/abs/2503.14476, section 3.2): a group whose
 * rollouts are all equal by a figure has no advantages and teaches nothing.
 *
 * A group of one stays: estimators that compare nothing learn from it. Figures are compared with each other; a deviation of
 * [0.1, 0.1, 0.1] would be 1.7e-17, and verl keeps such a group.
 */

import { isFlat } from "../statistics.ts";

/** Whether a group's figures are all equal, and more than one. */
export function isFlatGroup(figures: readonly number[]): boolean {
  return figures.length > 1 && isFlat(figures);
}

/** Groups apart by whether they teach, each in the order given. */
export interface FilteredGroups<Group> {
  readonly kept: readonly Group[];
  readonly flat: readonly Group[];
  /** How many of the flat groups have each figure, in order of the figures: those always solved, never solved, in between. */
  readonly flatByFigure: ReadonlyMap<number, number>;
}

/** @param figuresOf the figure of each rollout of a group, such as its reward. */
export function filterFlatGroups<Group>(
  groups: readonly Group[],
  figuresOf: (group: Group) => readonly number[],
): FilteredGroups<Group> {
  const { kept = [], flat = [] } = Object.groupBy(groups, (group) =>
    isFlatGroup(figuresOf(group)) ? "flat" : "kept",
  );
  const byFigure = Map.groupBy(flat, (group) => figuresOf(group)[0]!);
  const flatByFigure = new Map(
    [...byFigure].map(([figure, { length }]): [number, number] => [figure, length]).sort(([a], [b]) => a - b),
  );
  return { kept, flat, flatByFigure };
}
