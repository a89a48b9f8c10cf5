/**
 * How far an asynchronous run plays ahead of the step that trains, at most `trainer.maxStaleness` steps (A1 of open-groups.ts).
 *
 * A rollout that is complete long before its step only grows old meanwhile. So a run goes further ahead only where the trainer would
 * wait otherwise, and back where groups lie ready for longer than a step:
 *
 * H1: the first two steps play one step of groups ahead.
 * H2: where fewer groups were ready for the next step when one was trained than a step trains, the next one goes twice as far.
 * H3: where those of a whole further step were ready as well, it goes less far by a quarter of what was ready beyond the next step's
 *     groups, but never less than one step.
 * H4: what was ready is committed with the step, so the next owner of the run goes as far. Where an owner dies within a step, the next
 *     one counts anew, and may find other groups ready.
 */

import type { RunConfig } from "@hone/config";
import { MetricName } from "@hone/telemetry";

/**
 * @param before figures of the step before; where it has none of these, as in older runs, the run goes as far as it may.
 * @returns how many groups the next step plays ahead (H2, H3).
 */
export function nextAhead(
  { rollout: { tasksPerStep }, trainer: { maxStaleness } }: Pick<RunConfig, "rollout" | "trainer">,
  before: Readonly<Record<string, number>>,
): number {
  const most = maxStaleness * tasksPerStep;
  const { [MetricName.groupsAhead]: ahead = most, [MetricName.groupsReady]: ready = tasksPerStep } = before;
  if (ready < tasksPerStep) return Math.min(most, 2 * ahead);
  if (ready < 2 * tasksPerStep) return ahead;
  return Math.max(tasksPerStep, ahead - Math.ceil((ready - tasksPerStep) / 4));
}
