/**
 * A planner that knows the whole house: it finds actions that solve a task from any state.
 *
 * It searches over stages instead of single actions: to fetch a thing that matters, to treat it, to put it, to unlock the task's
 * door. A stage is the shortest walk to its place, with the doors on it opened and unlocked, and what is done there. Stages are
 * explored by the number of actions so far (uniform-cost search), so the plan is the shortest one, but for houses with ways
 * round where another walk would have opened a door that is needed later.
 */

import {
  CARRIED,
  carriedOf,
  type House,
  type HouseState,
  heldObject,
  isInSight,
  type Place,
  type Thing,
} from "./house.ts";
import { KEY, type RoomName } from "./lexicon.ts";
import { type Action, applyAction, isLocked } from "./rules.ts";
import { candidatesOf, isSolved, isTreated, type Task, TaskKind, TREATMENT_OF_TASK } from "./tasks.ts";

type Plan = readonly Action[];

interface Node {
  readonly state: HouseState;
  readonly plan: Plan;
}

/** @returns actions after which the task is solved, none if it is; undefined = there are none. */
export function solve(house: House, task: Task, start: HouseState): Plan | undefined {
  const candidates = candidatesOf(house, task);
  const relevant = relevantThings(house, candidates);
  /** Nodes by the length of their plans. */
  const open: Node[][] = [[{ state: start, plan: [] }]];
  const closed = new Set<string>();
  for (let cost = 0; cost < open.length; cost++) {
    for (const { state, plan } of open[cost] ?? []) {
      if (isSolved(house, task, state)) return plan;
      const key = keyOf(state, relevant);
      if (closed.has(key)) continue;
      closed.add(key);
      for (const stage of stagesOf(house, task, state, candidates, relevant)) {
        const next = { state: after(house, state, stage), plan: [...plan, ...stage] };
        const nodes = open[next.plan.length] ?? [];
        nodes.push(next);
        open[next.plan.length] = nodes;
      }
    }
  }
  return undefined;
}

/** The things that solve the task, and the keys that open doors. */
function relevantThings(house: House, candidates: readonly Thing[]): readonly Thing[] {
  const fitting = new Set([...house.doors.values()].map(({ key }) => key));
  return [...house.things.values()].filter((thing) => candidates.includes(thing) || fitting.has(thing.name));
}

/** Equal for states that differ only in what does not matter. */
function keyOf(state: HouseState, relevant: readonly Thing[]): string {
  const things = relevant.map(({ name }) => {
    const done = `${state.clean.has(name)}${state.warmth.get(name)}${state.examined.has(name)}`;
    return `${state.whereabouts.get(name)} ${done}`;
  });
  const hand = [...state.whereabouts].filter(([, where]) => where === CARRIED).map(([name]) => name);
  const sets = [state.open, state.unlocked, state.lit].map((names) => [...names].sort().join());
  return [state.room, state.place, ...things, hand.join(), ...sets].join("|");
}

function after(house: House, state: HouseState, stage: Plan): HouseState {
  return stage.reduce((current, action) => applyAction(house, current, action).state, state);
}

/** What can be done next, as far as it may help. */
function stagesOf(
  house: House,
  task: Task,
  state: HouseState,
  candidates: readonly Thing[],
  relevant: readonly Thing[],
): Plan[] {
  const ways = waysFrom(house, state);
  /** The actions that bring the player to a place; undefined = it cannot be reached yet. */
  const reach = (place: Place, isOpened: boolean): Plan | undefined => {
    const way = ways.get(place.room);
    if (way === undefined) return undefined;
    const approach: Plan = state.place === place.name ? [] : [{ kind: "approach", place: place.name }];
    const opening: Plan = isOpened && !isInSight(state, place) ? [{ kind: "open", name: place.name }] : [];
    return [...way, ...approach, ...opening];
  };
  const stages: Plan[] = [];
  const add = (beginning: Plan | undefined, ...end: Plan) => {
    if (beginning !== undefined) stages.push([...beginning, ...end]);
  };
  const places = [...house.places.values()];
  const held = heldObject(house, state);
  const carried = carriedOf(house, state).filter((thing) => candidates.includes(thing));
  for (const { name, kind } of relevant) {
    const place = house.places.get(state.whereabouts.get(name)!);
    if (place === undefined || (kind !== KEY && held !== undefined)) continue;
    add(reach(place, true), { kind: "take", thing: name, place: place.name });
  }
  if (held !== undefined && !candidates.includes(held)) {
    for (const place of places.filter(({ room }) => room === state.room)) {
      add(reach(place, true), { kind: "put", thing: held.name, place: place.name });
    }
  }
  switch (task.kind) {
    case TaskKind.unlock: {
      // Nobody gets behind a locked door, so the player comes from the room before it.
      const [before] = house.doors.get(task.door)!.rooms;
      if (carried.length > 0) add(ways.get(before), { kind: "unlock", door: task.door, key: task.key });
      break;
    }
    case TaskKind.examine:
      for (const place of places.filter(({ lamps }) => lamps.length > 0)) {
        const lit = place.lamps.some((lamp) => state.lit.has(lamp));
        const light: Plan = lit ? [] : [{ kind: "use", lamp: place.lamps[0]! }];
        const lying = candidates.filter(({ name }) => state.whereabouts.get(name) === place.name);
        for (const { name } of [...carried, ...lying])
          add(reach(place, true), ...light, { kind: "examine", name });
      }
      break;
    default: {
      const treatment = TREATMENT_OF_TASK[task.kind];
      for (const { name } of carried) {
        const isReady = treatment === undefined || isTreated(state, name, treatment);
        for (const place of places) {
          if (isReady && place.kind === task.target) {
            add(reach(place, true), { kind: "put", thing: name, place: place.name });
          }
          if (!isReady && place.treatment === treatment) {
            add(reach(place, false), { kind: "treat", treatment, thing: name, place: place.name });
          }
        }
      }
    }
  }
  return stages;
}

/** The shortest walks to all rooms that can be reached with the keys that the player carries, by Dijkstra's algorithm. */
function waysFrom(house: House, state: HouseState): ReadonlyMap<RoomName, Plan> {
  const ways = new Map<RoomName, Plan>();
  const open: Array<Array<readonly [RoomName, Plan]>> = [[[state.room, []]]];
  for (let cost = 0; cost < open.length; cost++) {
    for (const [room, way] of open[cost] ?? []) {
      if (ways.has(room)) continue;
      ways.set(room, way);
      for (const { direction, to, door } of house.rooms.get(room)!.exits) {
        const opening = door === undefined ? [] : openingOf(house, state, door);
        if (opening === undefined || ways.has(to)) continue;
        const next: Plan = [...way, ...opening, { kind: "move", direction }];
        const rooms = open[next.length] ?? [];
        rooms.push([to, next]);
        open[next.length] = rooms;
      }
    }
  }
  return ways;
}

/** What has to be done before one can walk through a door; undefined = the player does not carry its key. */
function openingOf(house: House, state: HouseState, name: string): Plan | undefined {
  if (state.open.has(name)) return [];
  const opening: Action = { kind: "open", name };
  if (!isLocked(house, state, name)) return [opening];
  const key = house.doors.get(name)!.key!;
  if (state.whereabouts.get(key) !== CARRIED) return undefined;
  return [{ kind: "unlock", door: name, key }, opening];
}
