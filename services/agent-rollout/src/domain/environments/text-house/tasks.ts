/**
 * Tasks: what has to be reached in a house, when it is, and which subgoals lead there.
 *
 * A task names kinds and not single things: "put a mug on a desk" is solved by any mug on any desk. Only the task `unlock` names
 * its door and its key.
 */

import { carriedOf, type House, type HouseState, type Thing, visibleThings, Warmth } from "./house.ts";
import { type KEY, type ObjectKindName, type PlaceKindName, Treatment } from "./lexicon.ts";

/** What a task asks for. */
export const TaskKind = {
  /** Put an object of a kind on or in a place of a kind. */
  put: "put",
  /** Put two of a kind on or in one and the same place. */
  putTwo: "put_two",
  /** Put an object that was cleaned. */
  putClean: "put_clean",
  /** Put a hot object. */
  putHot: "put_hot",
  /** Put a cold object. */
  putCold: "put_cold",
  /** Examine an object where a lamp is on. */
  examine: "examine",
  /** Find the key of a locked door and unlock the door. */
  unlock: "unlock",
} as const;
export type TaskKind = (typeof TaskKind)[keyof typeof TaskKind];

export const TASK_KINDS = Object.values(TaskKind) as [TaskKind, ...TaskKind[]];

export type Task =
  | {
      readonly kind: Exclude<TaskKind, "examine" | "unlock">;
      readonly object: ObjectKindName | typeof KEY;
      readonly target: PlaceKindName;
    }
  | { readonly kind: "examine"; readonly object: ObjectKindName }
  | { readonly kind: "unlock"; readonly door: string; readonly key: string };

/** A step towards the solution; once reached, it counts for the rest of the episode. */
export interface Subgoal {
  readonly name: "found" | "taken" | "cleaned" | "heated" | "cooled" | "put_one" | "lamp_on" | "solved";
  isReached(house: House, state: HouseState): boolean;
}

/** The treatment that a task demands before the object is put; undefined = none. */
export const TREATMENT_OF_TASK: Readonly<Partial<Record<TaskKind, Treatment>>> = {
  [TaskKind.putClean]: Treatment.clean,
  [TaskKind.putHot]: Treatment.heat,
  [TaskKind.putCold]: Treatment.cool,
};

export function isTreated(state: HouseState, thing: string, treatment: Treatment): boolean {
  switch (treatment) {
    case Treatment.clean:
      return state.clean.has(thing);
    case Treatment.heat:
      return state.warmth.get(thing) === Warmth.hot;
    case Treatment.cool:
      return state.warmth.get(thing) === Warmth.cold;
    default:
      return treatment satisfies never;
  }
}

/** The things with which the task can be solved. */
export function candidatesOf(house: House, task: Task): readonly Thing[] {
  if (task.kind === TaskKind.unlock) return [house.things.get(task.key)!];
  return [...house.things.values()].filter(({ kind }) => kind === task.object);
}

/** Whether the task is solved, in this very state. */
export function isSolved(house: House, task: Task, state: HouseState): boolean {
  switch (task.kind) {
    case TaskKind.examine:
      return candidatesOf(house, task).some(({ name }) => state.examined.has(name));
    case TaskKind.unlock:
      return state.unlocked.has(task.door);
    default:
      return mostPut(house, task, state) >= (task.kind === TaskKind.putTwo ? 2 : 1);
  }
}

/** In the order in which they are mostly reached; the last one is the solution. */
export function subgoalsOf(task: Task): readonly Subgoal[] {
  const solved: Subgoal = { name: "solved", isReached: (house, state) => isSolved(house, task, state) };
  switch (task.kind) {
    case TaskKind.put:
    case TaskKind.unlock:
      return [found(task), taken(task), solved];
    case TaskKind.putTwo:
      return [
        found(task),
        taken(task),
        { name: "put_one", isReached: (house, state) => mostPut(house, task, state) >= 1 },
        solved,
      ];
    case TaskKind.putClean:
      return [found(task), taken(task), treated("cleaned", task), solved];
    case TaskKind.putHot:
      return [found(task), taken(task), treated("heated", task), solved];
    case TaskKind.putCold:
      return [found(task), taken(task), treated("cooled", task), solved];
    case TaskKind.examine:
      return [found(task), { name: "lamp_on", isReached: (_house, state) => state.lit.size > 0 }, solved];
    default:
      return task satisfies never;
  }
}

/** Seen where the player stands, or carried. */
function found(task: Task): Subgoal {
  return {
    name: "found",
    isReached: (house, state) =>
      [...visibleThings(house, state), ...carriedOf(house, state)].some((thing) => isMeant(task, thing)),
  };
}

function taken(task: Task): Subgoal {
  return {
    name: "taken",
    isReached: (house, state) => carriedOf(house, state).some((thing) => isMeant(task, thing)),
  };
}

function treated(name: Subgoal["name"], task: Task): Subgoal {
  const treatment = TREATMENT_OF_TASK[task.kind];
  return {
    name,
    isReached: (house, state) =>
      treatment !== undefined &&
      candidatesOf(house, task).some((thing) => isTreated(state, thing.name, treatment)),
  };
}

function isMeant(task: Task, { name, kind }: Thing): boolean {
  return task.kind === TaskKind.unlock ? name === task.key : kind === task.object;
}

/** How many fitting things lie together in one place of the task's kind, at most. */
function mostPut(house: House, task: Extract<Task, { target: unknown }>, state: HouseState): number {
  const treatment = TREATMENT_OF_TASK[task.kind];
  const counts = new Map<string, number>();
  for (const { name } of candidatesOf(house, task)) {
    const where = state.whereabouts.get(name)!;
    const isThere = house.places.get(where)?.kind === task.target;
    if (!isThere || (treatment !== undefined && !isTreated(state, name, treatment))) continue;
    counts.set(where, (counts.get(where) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
