/**
 * Names of runs, slots and rollouts.
 *
 *   run id     <name>-<sequence of its request>            frozen-lake-12
 *   slot       <split>.<step>.<task>.<index in group>      train.3.17.5
 *   group id   <run id>/<split>.<step>.<task>              frozen-lake-12/train.3.17
 *   rollout id <run id>/<slot>                             frozen-lake-12/train.3.17.5
 *   model id   <run id>, or <run id>_<policy>[_<place>]    frozen-lake-12_opponent_3
 *
 * A rollout keeps its id over all its attempts. Environment seeds belong to the task, and its group shares them. Sampling
 * and tool seeds derive from (run seed, slot, turn), never from the run id, so that the same run file gives the same run.
 */

import { InvalidInputError } from "./errors.ts";
import { deriveSeed } from "./seed.ts";

/** What a rollout is for. */
export const Split = { train: "train", eval: "eval", warmStart: "warm" } as const;
export type Split = (typeof Split)[keyof typeof Split];

/** The place of a rollout in its run. */
export interface Slot {
  readonly split: Split;
  /**
   * Step that asked for it, which trains on it unless the run is asynchronous; in an evaluation, the policy version that is
   * evaluated.
   */
  readonly step: number;
  /** Index of the task within the batch. */
  readonly task: number;
  /** Index within the group. */
  readonly index: number;
}

const RUN_NAME = /^[a-z0-9-]{1,40}$/;
const SLOT = /^(train|eval|warm)\.(\d+)\.(\d+)\.(\d+)$/;

/** Whether a run may have this name. */
export function isRunName(name: string): boolean {
  return RUN_NAME.test(name);
}

export function runIdOf(name: string, requestSequence: number): string {
  if (!isRunName(name)) {
    throw new InvalidInputError(
      `A run cannot have the name "${name}"; give 1 to 40 characters out of a-z, 0-9 and -`,
      {
        path: "name",
        allowed: RUN_NAME.source,
      },
    );
  }
  return `${name}-${requestSequence}`;
}

/**
 * The name under which replicas serve a further policy of a run; the run's own has the run's id. Run ids and names of policies
 * have no `_`, so the parts can be told apart.
 * @param place of an earlier version among those that are served. @default the policy has one version at a time
 */
export function modelIdOf(runId: string, policy: string, place?: number): string {
  return place === undefined ? `${runId}_${policy}` : `${runId}_${policy}_${place}`;
}

/**
 * @returns the id by which a stream stores a message of a rollout only once. After a failed run was resumed, its rollouts are
 * made again, and the stream stores each of them once more.
 */
export function messageIdOf(id: string, resumption: number): string {
  return resumption === 0 ? id : `${id}~${resumption}`;
}

export function slotKey(slot: Slot): string {
  return `${slot.split}.${slot.step}.${slot.task}.${slot.index}`;
}

/** @throws {InvalidInputError} when the text is not a slot. */
export function parseSlotKey(key: string): Slot {
  const match = SLOT.exec(key);
  if (match === null) {
    throw new InvalidInputError(
      `"${key}" is not a slot; a slot has the form <split>.<step>.<task>.<index>, such as train.3.17.5`,
      {
        path: "slot",
        allowed: SLOT.source,
      },
    );
  }
  return {
    split: match[1] as Split,
    step: Number(match[2]),
    task: Number(match[3]),
    index: Number(match[4]),
  };
}

/** Names a group within its run. */
export function groupKey({ split, step, task }: Omit<Slot, "index">): string {
  return `${split}.${step}.${task}`;
}

export function groupIdOf(runId: string, slot: Slot): string {
  return `${runId}/${groupKey(slot)}`;
}

export function rolloutIdOf(runId: string, slot: Slot): string {
  return `${runId}/${slotKey(slot)}`;
}

/** The order in which rollouts of a run are packed. Float sums depend on it, so it must not depend on the order of arrival. */
export function compareSlots(a: Slot, b: Slot): number {
  return a.split.localeCompare(b.split) || a.step - b.step || a.task - b.task || a.index - b.index;
}

/** The seed for sampling, or for a tool, in one turn of one rollout. */
export function turnSeed(
  runSeed: number,
  slot: Slot,
  turn: number,
  purpose: "sampling" | "tool" = "sampling",
): number {
  return deriveSeed(runSeed, purpose, slotKey(slot), turn);
}
