/**
 * Draws houses with their things and a task, from a seed.
 *
 * G1: each key lies in a room that can be reached without its own door and without later ones, so all doors can be unlocked
 *     one after another, and everything in the house can be reached.
 * G2: there are enough objects of the task's kind, places of its target's kind, and appliances or lamps for it, and nothing is
 *     where the task wants it yet. By G1 and rule R6 every task can thus be solved.
 * G3: the draw is repeated until the solver needs as many steps as asked, and no more than the episode has.
 */

import { deriveSeed, InvalidInputError, Random } from "@hone/core";
import { doorOf, drawFloorPlan, type FloorPlan } from "./floor-plan.ts";
import type { Door, House, HouseState, Place, Room, Thing } from "./house.ts";
import {
  Holding,
  Home,
  KEY,
  METALS,
  OBJECT_KINDS,
  type ObjectKind,
  type ObjectKindName,
  PLACE_KINDS,
  type PlaceKind,
  type PlaceKindName,
  ROOM_KINDS,
  type RoomKind,
  type RoomName,
} from "./lexicon.ts";
import type { Action } from "./rules.ts";
import { solve } from "./solver.ts";
import { isSolved, type Task, TaskKind, TREATMENT_OF_TASK } from "./tasks.ts";

export interface HouseOptions {
  readonly rooms: number;
  readonly objects: number;
  readonly lockedDoors: number;
  readonly tasks: readonly TaskKind[];
  readonly minSolutionSteps: number;
  readonly maxSteps: number;
}

/** What an episode starts with. */
export interface Start {
  readonly house: House;
  readonly state: HouseState;
  readonly task: Task;
  /** Actions that solve the task. */
  readonly solution: readonly Action[];
}

/** Enough where one in a hundred houses has a task of the asked length; with the defaults nearly all have. */
const MAX_DRAWS = 1_000;
const OWN_HOME_SHARE = 0.7;
const SPARE_SHARE = 0.3;
const SECOND_LAMP_SHARE = 0.3;
const KEYS_AS_OBJECTS_SHARE = 0.15;

/**
 * The house of a seed.
 * @throws {InvalidInputError} when no house with a task of the asked length is found.
 */
export function drawStart(seed: number, options: HouseOptions): Start {
  const { minSolutionSteps, maxSteps } = options;
  for (let draw = 0; draw < MAX_DRAWS; draw++) {
    const { house, state, task } = drawHouse(deriveSeed(seed, "text_house", draw), options);
    if (isSolved(house, task, state)) continue;
    const solution = solve(house, task, state);
    const length = solution?.length ?? Number.POSITIVE_INFINITY;
    if (length < minSolutionSteps || length > maxSteps) continue; // G3
    return { house, state, task, solution: solution! };
  }
  const path = minSolutionSteps > 1 ? "minSolutionSteps" : "maxSteps";
  throw new InvalidInputError(
    `${MAX_DRAWS} houses were drawn for the seed ${seed}, and none had a task that takes from minSolutionSteps: ${minSolutionSteps} to maxSteps: ${maxSteps} steps`,
    { path, allowed: "a wider range of steps, or other numbers of rooms and locked doors" },
  );
}

function drawHouse(seed: number, options: HouseOptions): Omit<Start, "solution"> {
  const part = (name: string) => new Random(deriveSeed(seed, name));
  const kind = part("task_kind").pick(options.tasks);
  const rooms = drawRooms(part("rooms"), options.rooms);
  const numLocked = Math.max(options.lockedDoors, kind === TaskKind.unlock ? 1 : 0);
  const plan = drawFloorPlan(part("plan"), rooms, numLocked);
  const bare = furnish(part("places"), plan);
  const lamps = drawLamps(part("lamps"), bare);
  const places = bare.map((place) => ({ ...place, lamps: lamps.get(place.name) ?? [] }));
  const doors = lockDoors(part("keys"), plan);
  const task = drawTask(part("task"), kind, places, doors);
  const things = drawThings(part("things"), { task, options, places, plan, doors });
  const house: House = {
    rooms: new Map(rooms.map((name) => [name, roomOf(name, plan, places)])),
    places: new Map(places.map((place) => [place.name, place])),
    doors: new Map(doors.map((door) => [door.name, door])),
    things: new Map(things.map(([thing]) => [thing.name, thing])),
    lamps: new Map([...lamps].flatMap(([place, names]) => names.map((name) => [name, place] as const))),
  };
  const state: HouseState = {
    room: rooms[0]!,
    place: undefined,
    whereabouts: new Map(things.map(([thing, place]) => [thing.name, place])),
    open: new Set(plan.openDoors),
    unlocked: new Set(),
    clean: new Set(),
    warmth: new Map(),
    lit: new Set(),
    examined: new Set(),
  };
  return { house, state, task };
}

function roomOf(name: RoomName, plan: FloorPlan, places: readonly Place[]): Room {
  const own = places.filter(({ room }) => room === name).map((place) => place.name);
  return { name, exits: plan.exits.get(name)!, places: own };
}

/** The kitchen and others, in any order. */
function drawRooms(random: Random, count: number): readonly RoomName[] {
  const others = shuffled(
    random,
    (Object.keys(ROOM_KINDS) as RoomName[]).filter((name) => name !== "kitchen"),
  );
  return shuffled(random, ["kitchen" as const, ...others.slice(0, count - 1)]);
}

/** Places of all rooms, numbered by kind over the whole house. */
function furnish(random: Random, { rooms }: FloorPlan): readonly Place[] {
  const numbers = new Map<PlaceKindName, number>();
  return rooms.flatMap((room) => {
    const { has, mayHave }: RoomKind = ROOM_KINDS[room];
    const heater = room === "kitchen" ? [random.pick(["microwave", "stove"] as const)] : [];
    const kinds = [...has, ...heater, ...mayHave.filter(() => random.nextInt(2) === 0)].sort();
    return kinds.map((kind): Place => {
      const number = (numbers.get(kind) ?? 0) + 1;
      numbers.set(kind, number);
      return { name: `${kind} ${number}`, kind, room, ...(PLACE_KINDS[kind] as PlaceKind), lamps: [] };
    });
  });
}

/** By the place on which they stand. */
function drawLamps(random: Random, places: readonly Place[]): ReadonlyMap<string, readonly string[]> {
  const stands = places.filter(({ holding, treatment }) => holding === Holding.on && treatment === undefined);
  const count = Math.min(stands.length, random.next() < SECOND_LAMP_SHARE ? 2 : 1);
  const chosen = shuffled(random, stands).slice(0, count);
  return new Map(chosen.map(({ name }, index) => [name, [`lamp ${index + 1}`]]));
}

/** Gives each locked door a metal and a key of its own. */
function lockDoors(random: Random, plan: FloorPlan): readonly Door[] {
  const metals = shuffled(random, METALS);
  return [...plan.doors].map(([name, rooms]): Door => {
    const lock = plan.lockedRooms.findIndex((room) => doorOf(room) === name);
    if (lock < 0) return { name, rooms };
    const metal = metals[lock]!;
    return { name, rooms, metal, key: `${metal} ${KEY}` };
  });
}

function drawTask(random: Random, kind: TaskKind, places: readonly Place[], doors: readonly Door[]): Task {
  const objects = (Object.keys(OBJECT_KINDS) as ObjectKindName[]).filter((name) =>
    fits(kind, OBJECT_KINDS[name]),
  );
  switch (kind) {
    case TaskKind.unlock: {
      const { name, key } = random.pick(doors.filter((door) => door.key !== undefined));
      return { kind, door: name, key: key! };
    }
    case TaskKind.examine:
      return { kind, object: random.pick(objects) };
    default: {
      const targets = [
        ...new Set(places.flatMap((each) => (each.treatment === undefined ? [each.kind] : []))),
      ];
      const isOfKeys = kind === TaskKind.putTwo && random.next() < KEYS_AS_OBJECTS_SHARE;
      return { kind, object: isOfKeys ? KEY : random.pick(objects), target: random.pick(targets) };
    }
  }
}

function fits(kind: TaskKind, object: ObjectKind): boolean {
  if (kind === TaskKind.examine) return object.isForReading === true;
  const treatment = TREATMENT_OF_TASK[kind];
  return treatment === undefined || object.treatments.includes(treatment);
}

interface Furnished {
  readonly task: Task;
  readonly options: HouseOptions;
  readonly places: readonly Place[];
  readonly plan: FloorPlan;
  readonly doors: readonly Door[];
}

/** All things with the places where they lie at first. */
function drawThings(random: Random, furnished: Furnished): ReadonlyArray<readonly [Thing, place: string]> {
  return [...drawKeys(random, furnished), ...drawObjects(random, furnished)];
}

/** Keys of the locked doors (G1), and some that fit no door. */
function drawKeys(random: Random, { task, places, plan, doors }: Furnished) {
  const isWanted = task.kind === TaskKind.putTwo && task.object === KEY;
  const free = places.filter((place) => place.treatment === undefined);
  const allowed = isWanted ? free.filter(({ kind }) => kind !== task.target) : free;
  const keyPlace = (rooms: readonly RoomName[]) => {
    const inRooms = (place: Place) => rooms.includes(place.room);
    const choice = allowed.filter(inRooms);
    // The rooms may have nothing but the task's target; such a house is then drawn again if it is solved at once.
    return random.pick(choice.length > 0 ? choice : places.filter(inRooms)).name;
  };
  const keys = plan.lockedRooms.map((room, index): readonly [Thing, string] => {
    const { key } = doors.find(({ name }) => name === doorOf(room))!;
    const opened = new Set(plan.lockedRooms.slice(0, index));
    const rooms = plan.rooms.filter((each) => plan.locksBefore.get(each)!.every((lock) => opened.has(lock)));
    return [{ name: key!, kind: KEY }, keyPlace(rooms)];
  });
  const hasSpare = random.next() < SPARE_SHARE && keys.length > 0;
  const count = Math.max(keys.length + (hasSpare ? 1 : 0), isWanted ? 2 : 0);
  const metals = METALS.filter((metal) => !keys.some(([{ name }]) => name === `${metal} ${KEY}`));
  const spare = shuffled(random, metals).slice(0, count - keys.length);
  return [
    ...keys,
    ...spare.map((metal) => [{ name: `${metal} ${KEY}`, kind: KEY }, keyPlace(plan.rooms)] as const),
  ];
}

/** Objects of the task's kind where the task does not want them (G2), and others. */
function drawObjects(random: Random, { task, options, places }: Furnished) {
  const wanted = task.kind === TaskKind.unlock || task.object === KEY ? undefined : task.object;
  const numWanted = (task.kind === TaskKind.putTwo ? 2 : 1) + (random.next() < SPARE_SHARE ? 1 : 0);
  const others = (Object.keys(OBJECT_KINDS) as ObjectKindName[]).filter((kind) => kind !== wanted);
  const kinds = Array.from({ length: options.objects }, (_, index) =>
    wanted !== undefined && index < numWanted ? wanted : random.pick(others),
  );
  const numbers = new Map<ObjectKindName, number>();
  return kinds.map((kind): readonly [Thing, string] => {
    const number = (numbers.get(kind) ?? 0) + 1;
    numbers.set(kind, number);
    const possible = kind === wanted ? places.filter((place) => !isDone(task, place)) : places;
    return [{ name: `${kind} ${number}`, kind }, drawPlace(random, kind, possible)];
  });
}

/** Whether an object that lies there spares the player a part of the task. */
function isDone(task: Task, { kind, treatment, lamps }: Place): boolean {
  if (task.kind === TaskKind.unlock) return false;
  if (task.kind === TaskKind.examine) return lamps.length > 0;
  const needed = TREATMENT_OF_TASK[task.kind];
  return kind === task.target || (needed !== undefined && needed === treatment);
}

/** Mostly in a room where such objects are kept, and food and dishes more often in the kitchen than in the bath. */
function drawPlace(random: Random, kind: ObjectKindName, places: readonly Place[]): string {
  const { home } = OBJECT_KINDS[kind];
  const homely = places.filter(
    ({ room, treatment }) => ROOM_KINDS[room].home === home && isHomely(home, treatment),
  );
  const choice = homely.length > 0 && random.next() < OWN_HOME_SHARE ? homely : places;
  return random.pick(choice).name;
}

/** Only what belongs into a kitchen is kept in its appliances. */
function isHomely(home: Home, treatment: Place["treatment"]): boolean {
  return treatment === undefined || home === Home.kitchen;
}

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index--) {
    const other = random.nextInt(index + 1);
    [result[index], result[other]] = [result[other]!, result[index]!];
  }
  return result;
}
