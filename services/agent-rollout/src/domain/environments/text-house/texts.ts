/**
 * What the player reads, in simple English: rooms, places, results of actions, the task.
 *
 * A sentence never begins with a name, so that each name has one spelling. All words stand in `vocabulary.ts`.
 */

import { prepositionOf } from "./commands.ts";
import {
  carriedOf,
  type Exit,
  type House,
  type HouseState,
  isInSight,
  type Place,
  placeOf,
  roomOf,
  type Thing,
  thingsAt,
} from "./house.ts";
import {
  Holding,
  KEY,
  type ObjectKindName,
  PLACE_KINDS,
  type PlaceKindName,
  Treatment,
  treatmentsOf,
} from "./lexicon.ts";
import { type Action, doorHere, isInLight, isLocked, type Outcome, type Refusal } from "./rules.ts";
import { type Task, TaskKind } from "./tasks.ts";

export const NOT_UNDERSTOOD = "That is not a command.";
export const TASK_DONE = "You have done your task.";

const PLURALS: Readonly<Partial<Record<ObjectKindName | typeof KEY, string>>> = {
  glass: "glasses",
  knife: "knives",
  potato: "potatoes",
  tomato: "tomatoes",
  watch: "watches",
};

export function pluralOf(kind: ObjectKindName | typeof KEY): string {
  return PLURALS[kind] ?? `${kind}s`;
}

/** The task as it follows "Your task is to". */
export function taskText(task: Task): string {
  switch (task.kind) {
    case TaskKind.examine:
      return `examine ${one(task.object)} in the light of a lamp`;
    case TaskKind.unlock:
      return `find the ${task.key} and unlock the ${task.door} with it`;
    case TaskKind.putTwo:
      return `find two ${pluralOf(task.object)} and put them ${on(task.target)} the same ${task.target}`;
    case TaskKind.put:
      return `put ${one(task.object)} ${on(task.target)} ${one(task.target)}`;
    case TaskKind.putClean:
      return `put a clean ${task.object} ${on(task.target)} ${one(task.target)}`;
    case TaskKind.putHot:
      return `put a hot ${task.object} ${on(task.target)} ${one(task.target)}`;
    case TaskKind.putCold:
      return `put a cold ${task.object} ${on(task.target)} ${one(task.target)}`;
    default:
      return task satisfies never;
  }
}

/** The first observation. */
export function introduction(house: House, state: HouseState, task: Task): string {
  return [
    `The house has these rooms: ${[...house.rooms.keys()].join(", ")}.`,
    roomText(house, state),
    `Your task is to ${taskText(task)}.`,
  ].join("\n");
}

export function availableActions(commands: readonly string[]): string {
  return `Available actions: ${commands.join(", ")}`;
}

/** The result of an action. */
export function resultText(
  house: House,
  before: HouseState,
  action: Action,
  { state, refusal }: Outcome,
): string {
  if (refusal !== undefined) return refusalText(refusal);
  const isChanged = state !== before;
  switch (action.kind) {
    case "look":
      return [roomText(house, state), ...placeLines(house, state)].join(" ");
    case "inventory":
      return inventoryText(house, state);
    case "move":
      return `You go ${action.direction}. ${roomText(house, state)}`;
    case "approach":
      return isChanged
        ? `You go to the ${action.place}. ${contentText(house, state, action.place)}`
        : `You are already at the ${action.place}.`;
    case "open":
      if (!isChanged) return `The ${action.name} is already open.`;
      return [`You open the ${action.name}.`, ...contentLines(house, state, action.name)].join(" ");
    case "close":
      return isChanged ? `You close the ${action.name}.` : `The ${action.name} is already closed.`;
    case "take":
      return `You take the ${action.thing} from the ${action.place}.`;
    case "put":
      return `You put the ${action.thing} ${prepositionOf(house, action.place)} the ${action.place}.`;
    case "treat":
      return isChanged
        ? `You ${action.treatment} the ${action.thing} with the ${action.place}. It is ${RESULTS[action.treatment]} now.`
        : `The ${action.thing} is already ${RESULTS[action.treatment]}.`;
    case "unlock":
      return isChanged
        ? `You unlock the ${action.door} with the ${action.key}.`
        : `The ${action.door} is already unlocked.`;
    case "examine":
      return examineText(house, state, action.name);
    case "use":
      return isChanged ? `You turn on the ${action.lamp}.` : `The ${action.lamp} is already on.`;
    default:
      return action satisfies never;
  }
}

const RESULTS: Readonly<Record<Treatment, string>> = {
  [Treatment.clean]: "clean",
  [Treatment.heat]: "hot",
  [Treatment.cool]: "cold",
};

/** What the player carries, for people and prompts. */
export function carryingText(house: House, state: HouseState): string {
  const names = carriedOf(house, state).map(({ name }) => name);
  return names.length === 0 ? "nothing" : names.join(", ");
}

function inventoryText(house: House, state: HouseState): string {
  return `You carry ${carryingText(house, state)}.`;
}

function refusalText(refusal: Refusal): string {
  switch (refusal.kind) {
    case "impossible":
      return "Nothing happens.";
    case "locked":
    case "closed":
      return `The ${refusal.name} is ${refusal.kind}.`;
    case "hands_full":
      return `You carry the ${refusal.held} already.`;
    case "wrong_key":
      return `The ${refusal.key} does not fit.`;
    default:
      return refusal satisfies never;
  }
}

function roomText(house: House, state: HouseState): string {
  const { name, places, exits } = roomOf(house, state);
  return [
    `You are in the ${name}.`,
    `You see ${places.join(", ")}.`,
    ...exits.map((exit) => exitText(house, state, exit)),
  ].join(" ");
}

function exitText(house: House, state: HouseState, { direction, to, door }: Exit): string {
  const where = `The ${to} is to the ${direction}`;
  if (door === undefined) return `${where}.`;
  if (state.open.has(door)) return `${where}, through the open ${door}.`;
  if (!isLocked(house, state, door)) return `${where}, behind the closed ${door}.`;
  return `${where}, behind the locked ${door}, which has ${one(`${house.doors.get(door)!.metal} lock`)}.`;
}

/** What stands where the player is; none when the player is at no place. */
function placeLines(house: House, state: HouseState): readonly string[] {
  const place = placeOf(house, state);
  return place === undefined ? [] : [`You are at the ${place.name}.`, contentText(house, state, place.name)];
}

/** None for a door. */
function contentLines(house: House, state: HouseState, name: string): readonly string[] {
  return house.places.has(name) ? [contentText(house, state, name)] : [];
}

function contentText(house: House, state: HouseState, name: string): string {
  const place = house.places.get(name)!;
  if (!isInSight(state, place)) return `The ${name} is closed.`;
  const names = [...thingsAt(house, state, name).map((thing) => thing.name), ...place.lamps];
  const start = prepositionOf(house, name) === "on" ? "On" : "In";
  const seen = `${start} the ${name} you see ${names.length === 0 ? "nothing" : names.join(", ")}.`;
  return [seen, ...litLamps(state, place).map((lamp) => `The ${lamp} is on.`)].join(" ");
}

function litLamps(state: HouseState, { lamps }: Place): readonly string[] {
  return lamps.filter((lamp) => state.lit.has(lamp));
}

function examineText(house: House, state: HouseState, name: string): string {
  const thing = house.things.get(name);
  if (thing !== undefined) return thingText(house, state, thing);
  if (house.places.has(name)) return contentText(house, state, name);
  if (house.lamps.has(name)) return `The ${name} is ${state.lit.has(name) ? "on" : "off"}.`;
  const door = doorHere(house, state, name);
  const exit = roomOf(house, state).exits.find((each) => each.door === door?.name);
  return exitText(house, state, exit!);
}

function thingText(house: House, state: HouseState, thing: Thing): string {
  const { name } = thing;
  const [lamp] = isInLight(house, state) ? litLamps(state, placeOf(house, state)!) : [];
  const seen = lamp === undefined ? [] : [`In the light of the ${lamp} you see the ${name} well.`];
  const canBeDirty = treatmentsOf(thing.kind).includes(Treatment.clean);
  const qualities = [
    ...(canBeDirty ? [state.clean.has(name) ? "clean" : "dirty"] : []),
    ...(state.warmth.has(name) ? [state.warmth.get(name)!] : []),
  ];
  const known =
    qualities.length > 0
      ? `The ${name} is ${qualities.join(" and ")}.`
      : thing.kind === KEY
        ? `The ${name} may fit ${one(name.replace(KEY, "lock"))}.`
        : `You see nothing special about the ${name}.`;
  return [...seen, known].join(" ");
}

function one(kind: string): string {
  return `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`;
}

function on(kind: PlaceKindName): string {
  return PLACE_KINDS[kind].holding === Holding.on ? "on" : "in";
}
