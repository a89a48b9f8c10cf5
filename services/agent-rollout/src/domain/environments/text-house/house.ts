/**
 * The world: a house, which never changes, and the state of what is in it.
 *
 * Things are known by their names, which are unique in a house: "drawer 2", "mug 1", "brass key", "lamp 1", "cellar door". They
 * are held in maps, never in plain objects, as names may come from a model.
 */

import type {
  Direction,
  Holding,
  KEY,
  Metal,
  ObjectKindName,
  PlaceKindName,
  RoomName,
  Treatment,
} from "./lexicon.ts";

/** A way from a room to its neighbour. */
export interface Exit {
  readonly direction: Direction;
  readonly to: RoomName;
  /** Absent = an open passage. */
  readonly door?: string;
}

export interface Room {
  readonly name: RoomName;
  readonly exits: readonly Exit[];
  /** Names of its places. */
  readonly places: readonly string[];
}

export interface Place {
  readonly name: string;
  readonly kind: PlaceKindName;
  readonly room: RoomName;
  readonly holding: Holding;
  readonly treatment?: Treatment;
  /** Lamps that stand here; they cannot be taken. */
  readonly lamps: readonly string[];
}

export interface Door {
  readonly name: string;
  /** The rooms on both sides; the second one is further from the start, and the door is called after it. */
  readonly rooms: readonly [RoomName, RoomName];
  /** The key that fits; absent = a door without a lock. */
  readonly key?: string;
  readonly metal?: Metal;
}

/** Something that can be carried. */
export interface Thing {
  readonly name: string;
  readonly kind: ObjectKindName | typeof KEY;
}

export interface House {
  readonly rooms: ReadonlyMap<RoomName, Room>;
  readonly places: ReadonlyMap<string, Place>;
  readonly doors: ReadonlyMap<string, Door>;
  readonly things: ReadonlyMap<string, Thing>;
  /** Names of the lamps, with the place on which each stands. */
  readonly lamps: ReadonlyMap<string, string>;
}

export const Warmth = { hot: "hot", cold: "cold" } as const;
export type Warmth = (typeof Warmth)[keyof typeof Warmth];

/** Where a carried thing is. */
export const CARRIED = "you";

/** What actions change. A state is never modified: rules make a new one. */
export interface HouseState {
  readonly room: RoomName;
  /** The place at which the player stands; undefined = in the room, at no place. */
  readonly place: string | undefined;
  /** Where each thing is: the name of a place, or {@link CARRIED}. */
  readonly whereabouts: ReadonlyMap<string, string>;
  /** Open places and doors. */
  readonly open: ReadonlySet<string>;
  /** Doors with a lock that are unlocked. */
  readonly unlocked: ReadonlySet<string>;
  /** Things that were cleaned; what can be cleaned is dirty at first. */
  readonly clean: ReadonlySet<string>;
  /** Absent = neither hot nor cold. */
  readonly warmth: ReadonlyMap<string, Warmth>;
  /** Lamps that are on; they stay so. */
  readonly lit: ReadonlySet<string>;
  /** Things that were examined in the light of a lamp. */
  readonly examined: ReadonlySet<string>;
}

/** The objects that are carried, in the order of the house: at most one, and any number of keys. */
export function carriedOf(house: House, state: HouseState): readonly Thing[] {
  return thingsAt(house, state, CARRIED);
}

/** The object in the player's hands; undefined = none. Keys do not need a hand. */
export function heldObject(house: House, state: HouseState): Thing | undefined {
  return carriedOf(house, state).find(({ kind }) => kind !== "key");
}

/** What lies in or on a place, in sight or not. */
export function thingsAt(house: House, state: HouseState, place: string): readonly Thing[] {
  const things: Thing[] = [];
  for (const [name, where] of state.whereabouts) {
    if (where === place) things.push(house.things.get(name)!);
  }
  return things;
}

/** Whether things in or on the place are in sight of one who stands there. */
export function isInSight(state: HouseState, { name, holding }: Place): boolean {
  return holding !== "inside" || state.open.has(name);
}

/** The place where the player stands. */
export function placeOf(house: House, state: HouseState): Place | undefined {
  return state.place === undefined ? undefined : house.places.get(state.place);
}

/** What lies in sight where the player stands; nothing when the player stands at no place. */
export function visibleThings(house: House, state: HouseState): readonly Thing[] {
  const place = placeOf(house, state);
  return place === undefined || !isInSight(state, place) ? [] : thingsAt(house, state, place.name);
}

export function roomOf(house: House, state: HouseState): Room {
  return house.rooms.get(state.room)!;
}

/** A text that is equal for equal states, in whatever order they came about. */
export function stateKey({ room, place, whereabouts, warmth, ...sets }: HouseState): string {
  const names = [sets.open, sets.unlocked, sets.clean, sets.lit, sets.examined].map((set) =>
    [...set].sort().join(),
  );
  const warm = [...warmth].map(([thing, how]) => `${thing} ${how}`).sort();
  return [room, place, [...whereabouts.values()].join(), warm.join(), ...names].join("|");
}
