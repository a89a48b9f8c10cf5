/**
 * What actions do, as a pure function of the state.
 *
 * R1: the player is in a room, and at one of its places or at none. Only what is at the player's place can be taken, opened,
 *     used or examined, but for the doors of the room and what the player carries.
 * R2: things in a place that can be closed are in sight while it is open.
 * R3: the player carries one object at most, and any number of keys.
 * R4: a locked door opens only after it is unlocked by its key; nothing is ever locked again.
 * R5: an appliance needs only be where the player is; heat ends cold, and cold ends heat.
 * R6: whatever was done to a place, a door or an object, the task can still be solved.
 * R7: an action that changes nothing returns the same state object.
 */

import {
  CARRIED,
  type Exit,
  type House,
  type HouseState,
  heldObject,
  isInSight,
  type Place,
  placeOf,
  roomOf,
  visibleThings,
  Warmth,
} from "./house.ts";
import { type Direction, Holding, KEY, Treatment, treatmentsOf } from "./lexicon.ts";

/** An action, with the names of what it is about. */
export type Action =
  | { readonly kind: "look" | "inventory" }
  | { readonly kind: "move"; readonly direction: Direction }
  | { readonly kind: "approach"; readonly place: string }
  /** `name`: a place or a door. */
  | { readonly kind: "open" | "close"; readonly name: string }
  | { readonly kind: "take" | "put"; readonly thing: string; readonly place: string }
  | {
      readonly kind: "treat";
      readonly treatment: Treatment;
      readonly thing: string;
      readonly place: string;
    }
  | { readonly kind: "unlock"; readonly door: string; readonly key: string }
  /** `name`: a thing, a lamp, a door or a place. */
  | { readonly kind: "examine"; readonly name: string }
  | { readonly kind: "use"; readonly lamp: string };

/** Why an action was impossible. */
export type Refusal =
  /** What it names is not here, or it makes no sense. */
  | { readonly kind: "impossible" }
  | { readonly kind: "locked" | "closed"; readonly name: string }
  | { readonly kind: "hands_full"; readonly held: string }
  | { readonly kind: "wrong_key"; readonly key: string };

export interface Outcome {
  /** The same object as before when nothing changed (R7). */
  readonly state: HouseState;
  /** Absent = the action was possible. */
  readonly refusal?: Refusal;
}

/** What an action leads to. Names that the house does not have are impossible, whatever they are. */
export function applyAction(house: House, state: HouseState, action: Action): Outcome {
  switch (action.kind) {
    case "look":
    case "inventory":
      return { state };
    case "move":
      return move(house, state, action.direction);
    case "approach":
      if (house.places.get(action.place)?.room !== state.room) return impossible(state);
      return { state: action.place === state.place ? state : { ...state, place: action.place } };
    case "open":
      return open(house, state, action.name);
    case "close":
      return close(house, state, action.name);
    case "take":
      return take(house, state, action.thing, action.place);
    case "put":
      return put(house, state, action.thing, action.place);
    case "treat":
      return treat(house, state, action);
    case "unlock":
      return unlock(house, state, action.door, action.key);
    case "examine":
      return examine(house, state, action.name);
    case "use":
      if (house.lamps.get(action.lamp) === undefined || house.lamps.get(action.lamp) !== state.place) {
        return impossible(state);
      }
      return {
        state: state.lit.has(action.lamp) ? state : { ...state, lit: including(state.lit, action.lamp) },
      };
    default:
      return action satisfies never;
  }
}

/** The door of this name, if it is one of the room's. */
export function doorHere(house: House, state: HouseState, name: string) {
  const door = house.doors.get(name);
  return door?.rooms.includes(state.room) ? door : undefined;
}

/** Whether a door has a lock that is not yet unlocked. */
export function isLocked(house: House, state: HouseState, door: string): boolean {
  return house.doors.get(door)?.key !== undefined && !state.unlocked.has(door);
}

/** Why an exit cannot be taken; undefined = it can. */
export function obstacleOf(house: House, state: HouseState, { door }: Exit): Refusal | undefined {
  if (door === undefined || state.open.has(door)) return undefined;
  return { kind: isLocked(house, state, door) ? "locked" : "closed", name: door };
}

/** Whether a lamp is on where the player stands. */
export function isInLight(house: House, state: HouseState): boolean {
  return placeOf(house, state)?.lamps.some((lamp) => state.lit.has(lamp)) ?? false;
}

function move(house: House, state: HouseState, direction: Direction): Outcome {
  const exit = roomOf(house, state).exits.find((each) => each.direction === direction);
  if (exit === undefined) return impossible(state);
  const refusal = obstacleOf(house, state, exit);
  if (refusal !== undefined) return { state, refusal };
  return { state: { ...state, room: exit.to, place: undefined } };
}

function open(house: House, state: HouseState, name: string): Outcome {
  if (!canBeOpened(house, state, name)) return impossible(state);
  if (isLocked(house, state, name)) return { state, refusal: { kind: "locked", name } }; // R4
  return { state: state.open.has(name) ? state : { ...state, open: including(state.open, name) } };
}

function close(house: House, state: HouseState, name: string): Outcome {
  if (!canBeOpened(house, state, name)) return impossible(state);
  return { state: state.open.has(name) ? { ...state, open: excluding(state.open, name) } : state };
}

/** Whether it is a door of the room, or the player's place if that has a door of its own. */
function canBeOpened(house: House, state: HouseState, name: string): boolean {
  if (doorHere(house, state, name) !== undefined) return true;
  return name === state.place && house.places.get(name)?.holding === Holding.inside;
}

function take(house: House, state: HouseState, name: string, placeName: string): Outcome {
  const place = placeOf(house, state);
  if (place === undefined || place.name !== placeName) return impossible(state);
  if (!isInSight(state, place)) return closed(state, place); // R2
  const thing = house.things.get(name);
  if (thing === undefined || state.whereabouts.get(name) !== place.name) return impossible(state);
  const held = heldObject(house, state);
  if (held !== undefined && thing.kind !== KEY) {
    return { state, refusal: { kind: "hands_full", held: held.name } }; // R3
  }
  return { state: movedTo(state, name, CARRIED) };
}

function put(house: House, state: HouseState, name: string, placeName: string): Outcome {
  const place = placeOf(house, state);
  if (place === undefined || place.name !== placeName || !isCarried(state, name)) return impossible(state);
  if (!isInSight(state, place)) return closed(state, place);
  return { state: movedTo(state, name, place.name) };
}

/** R5 */
function treat(
  house: House,
  state: HouseState,
  { treatment, thing: name, place: placeName }: Extract<Action, { kind: "treat" }>,
): Outcome {
  const place = placeOf(house, state);
  const thing = house.things.get(name);
  const isPossible =
    place?.name === placeName &&
    place.treatment === treatment &&
    thing !== undefined &&
    isCarried(state, name) &&
    treatmentsOf(thing.kind).includes(treatment);
  if (!isPossible) return impossible(state);
  if (treatment === Treatment.clean) {
    return { state: state.clean.has(name) ? state : { ...state, clean: including(state.clean, name) } };
  }
  const warmth = treatment === Treatment.heat ? Warmth.hot : Warmth.cold;
  if (state.warmth.get(name) === warmth) return { state };
  return { state: { ...state, warmth: new Map(state.warmth).set(name, warmth) } };
}

function unlock(house: House, state: HouseState, doorName: string, key: string): Outcome {
  const door = doorHere(house, state, doorName);
  if (door?.key === undefined || house.things.get(key)?.kind !== KEY || !isCarried(state, key)) {
    return impossible(state);
  }
  if (door.key !== key) return { state, refusal: { kind: "wrong_key", key } };
  return {
    state: state.unlocked.has(doorName) ? state : { ...state, unlocked: including(state.unlocked, doorName) },
  };
}

function examine(house: House, state: HouseState, name: string): Outcome {
  const isThing = isCarried(state, name) || visibleThings(house, state).some((thing) => thing.name === name);
  if (isThing) {
    if (!isInLight(house, state) || state.examined.has(name)) return { state };
    return { state: { ...state, examined: including(state.examined, name) } };
  }
  const isHere =
    name === state.place ||
    doorHere(house, state, name) !== undefined ||
    (state.place !== undefined && house.lamps.get(name) === state.place);
  return isHere ? { state } : impossible(state);
}

function isCarried(state: HouseState, name: string): boolean {
  return state.whereabouts.get(name) === CARRIED;
}

function impossible(state: HouseState): Outcome {
  return { state, refusal: { kind: "impossible" } };
}

function closed(state: HouseState, { name }: Place): Outcome {
  return { state, refusal: { kind: "closed", name } };
}

function movedTo(state: HouseState, thing: string, where: string): HouseState {
  return { ...state, whereabouts: new Map(state.whereabouts).set(thing, where) };
}

function including(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  return new Set(names).add(name);
}

function excluding(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const rest = new Set(names);
  rest.delete(name);
  return rest;
}
