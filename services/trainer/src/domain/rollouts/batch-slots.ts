/** The slots of a batch of tasks. */

import type { Slot } from "@hone/core";

/**
 * @param firstTask index of the batch's first task within the step.
 * @returns the slots of a batch: for each task in turn, one slot for each rollout of its group.
 */
export function batchSlots(
  split: Slot["split"],
  step: number,
  taskCount: number,
  groupSize: number,
  firstTask = 0,
): Slot[] {
  return Array.from({ length: taskCount * groupSize }, (_, i) => ({
    split,
    step,
    task: firstTask + Math.floor(i / groupSize),
    index: i % groupSize,
  }));
}
