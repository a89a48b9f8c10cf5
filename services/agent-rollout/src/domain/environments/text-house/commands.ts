/**
 * Commands: actions as text, in plain English.
 *
 * C1: case, articles, punctuation and white space do not matter, and several words are known for each action.
 * C2: a thing may be called by its kind alone, such as "mug", where only one of them can be meant.
 * C3: what is named need not exist: the rules refuse it. A text that is no command at all is undefined.
 */

import { carriedOf, type House, type HouseState, placeOf, roomOf, visibleThings } from "./house.ts";
import { DIRECTIONS, type Direction, Holding, KEY, Treatment } from "./lexicon.ts";
import type { Action } from "./rules.ts";

/** Longer texts are no commands; the longest proper command has about 50 characters. */
const MAX_CHARACTERS = 200;

const ARTICLES = new Set(["the", "a", "an", "my", "some", "please"]);
const SHORT_DIRECTIONS = new Map<string, Direction>([
  ...DIRECTIONS.map((direction) => [direction, direction] as const),
  ...DIRECTIONS.map((direction) => [direction.charAt(0), direction] as const),
]);

type Verb = Exclude<Action["kind"], "move" | "approach" | "treat"> | "go" | Treatment;

/** Beginnings of commands; of several that fit the longest counts. */
const VERBS: ReadonlyMap<string, Verb> = new Map(
  Object.entries({
    look: ["look", "l", "look around"],
    inventory: ["inventory", "inv", "i", "check inventory"],
    go: [
      "go",
      "go to",
      "go into",
      "go through",
      "walk",
      "walk to",
      "head",
      "head to",
      "enter",
      "approach",
      "move to",
    ],
    open: ["open"],
    close: ["close", "shut"],
    take: ["take", "get", "grab", "pick up", "pick"],
    put: ["put", "put down", "place", "drop", "insert", "move"],
    clean: ["clean", "wash", "rinse"],
    heat: ["heat", "heat up", "warm", "warm up", "cook"],
    cool: ["cool", "cool down", "chill"],
    unlock: ["unlock"],
    examine: ["examine", "inspect", "look at", "read", "x", "check"],
    use: ["use", "turn on", "switch on", "light"],
  } satisfies Record<Verb, readonly string[]>).flatMap(([verb, phrases]) =>
    phrases.map((phrase) => [phrase, verb as Verb] as const),
  ),
);
const MAX_VERB_WORDS = 2;

/** Words between what is acted on and the second thing of a command. */
const LINKS: ReadonlySet<string> = new Set(
  "from out of off in on into onto inside to with using at under by".split(" "),
);

/** The text of an action, which {@link parseCommand} reads as the same action. */
export function commandOf(house: House, action: Action): string {
  switch (action.kind) {
    case "look":
    case "inventory":
      return action.kind;
    case "move":
      return `go ${action.direction}`;
    case "approach":
      return `go to ${action.place}`;
    case "open":
    case "close":
    case "examine":
      return `${action.kind} ${action.name}`;
    case "take":
      return `take ${action.thing} from ${action.place}`;
    case "put":
      return `put ${action.thing} ${prepositionOf(house, action.place)} ${action.place}`;
    case "treat":
      return `${action.treatment} ${action.thing} with ${action.place}`;
    case "unlock":
      return `unlock ${action.door} with ${action.key}`;
    case "use":
      return `use ${action.lamp}`;
    default:
      return action satisfies never;
  }
}

export function prepositionOf(house: House, place: string): "in" | "on" {
  return house.places.get(place)?.holding === Holding.on ? "on" : "in";
}

/** The action that a text commands in a state; undefined = it is no command. */
export function parseCommand(house: House, state: HouseState, text: string): Action | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const words = (text.toLowerCase().match(/[a-z]+|[0-9]+/g) ?? []).filter((word) => !ARTICLES.has(word));
  const direction = words.length === 1 ? SHORT_DIRECTIONS.get(words[0]!) : undefined;
  if (direction !== undefined) return { kind: "move", direction };
  for (let length = MAX_VERB_WORDS; length > 0; length--) {
    const verb = VERBS.get(words.slice(0, length).join(" "));
    if (verb !== undefined) return actionOf(house, state, verb, words.slice(length));
  }
  return undefined;
}

function actionOf(house: House, state: HouseState, verb: Verb, words: readonly string[]): Action | undefined {
  const [first, second] = nounsOf(words);
  if (verb === "look" || verb === "inventory") return words.length === 0 ? { kind: verb } : undefined;
  if (first === "") return undefined;
  const here = state.place === undefined ? [] : [state.place];
  const doors = roomOf(house, state).exits.flatMap(({ door }) => door ?? []);
  const carried = carriedOf(house, state).map(({ name }) => name);
  const visible = visibleThings(house, state).map(({ name }) => name);
  const lamps = placeOf(house, state)?.lamps ?? [];
  /** Where nothing else is said, the player's place is meant; no place has the empty name. */
  const place = second === "" ? (state.place ?? "") : meant(second, here);
  switch (verb) {
    case "go":
      return goTo(house, state, first);
    case "open":
    case "close":
      return { kind: verb, name: meant(first, [...here, ...doors]) };
    case "take":
      return { kind: verb, thing: meant(first, visible), place };
    case "put": {
      // "move" goes with things and with directions.
      const direction = SHORT_DIRECTIONS.get(first);
      return direction === undefined
        ? { kind: verb, thing: meant(first, carried), place }
        : { kind: "move", direction };
    }
    case Treatment.clean:
    case Treatment.heat:
    case Treatment.cool:
      return { kind: "treat", treatment: verb, thing: meant(first, carried), place };
    case "unlock": {
      const keys = carried.filter((name) => house.things.get(name)?.kind === KEY);
      return { kind: verb, door: meant(first, doors), key: meant(second === "" ? KEY : second, keys) };
    }
    case "examine":
      return { kind: verb, name: meant(first, [...carried, ...visible, ...lamps, ...here, ...doors]) };
    case "use":
      return { kind: verb, lamp: meant(first, lamps) };
    default:
      return verb satisfies never;
  }
}

function goTo(house: House, state: HouseState, target: string): Action {
  const direction = SHORT_DIRECTIONS.get(target);
  if (direction !== undefined) return { kind: "move", direction };
  const { exits, places } = roomOf(house, state);
  const exit = exits.find(({ to, door }) => to === target || door === target);
  return exit === undefined
    ? { kind: "approach", place: meant(target, places) }
    : { kind: "move", direction: exit.direction };
}

/** What stands before the first link and after the links that follow each other there. */
function nounsOf(words: readonly string[]): readonly [first: string, second: string] {
  const begin = words.findIndex((word) => LINKS.has(word));
  if (begin < 0) return [words.join(" "), ""];
  const rest = words.slice(begin);
  const length = rest.findIndex((word) => !LINKS.has(word));
  return [words.slice(0, begin).join(" "), length < 0 ? "" : rest.slice(length).join(" ")];
}

/** The only one of the names that the words can mean (C2), or the words themselves (C3). */
function meant(words: string, names: readonly string[]): string {
  if (names.includes(words)) return words;
  const fitting = names.filter((name) => kindOf(name) === words);
  return fitting.length === 1 ? fitting[0]! : words;
}

/** "mug 1" is a mug, "brass key" a key and "living room door" a door. */
function kindOf(name: string): string {
  const words = name.split(" ");
  return /^[0-9]+$/.test(words.at(-1)!) ? words.slice(0, -1).join(" ") : words.at(-1)!;
}
