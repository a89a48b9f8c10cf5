/** Houses for tests: a small one that is written by hand, and the difficulties that are drawn. */

import type { House, HouseState } from "./house.ts";
import { type Action, applyAction } from "./rules.ts";
import { type TextHouseConfig, textHouseConfigSchema } from "./text-house.ts";

/** From one room to the largest houses. The limits of steps leave room for every task of the difficulty. */
export const DIFFICULTIES = {
  easy: { rooms: 1, objects: 6 },
  default: {},
  medium: { rooms: 5, objects: 15, maxSteps: 50 },
  hard: { rooms: 8, objects: 25, maxSteps: 60 },
  largest: { rooms: 12, objects: 60, lockedDoors: 4, maxSteps: 100 },
} as const satisfies Readonly<Record<string, Partial<TextHouseConfig>>>;

export function houseConfig(changes: Partial<TextHouseConfig> = {}): TextHouseConfig {
  return textHouseConfigSchema.parse(changes);
}

/**
 * A kitchen, a study to its east behind a closed door, and a cellar to its south behind a locked one. The brass key lies in the
 * closed drawer of the study, the iron key fits no door, and the lamp stands on the desk.
 */
export const SMALL_HOUSE: House = {
  rooms: new Map([
    [
      "kitchen",
      {
        name: "kitchen",
        exits: [
          { direction: "east", to: "study", door: "study door" },
          { direction: "south", to: "cellar", door: "cellar door" },
        ],
        places: ["counter 1", "fridge 1", "sink 1", "stove 1"],
      },
    ],
    [
      "study",
      {
        name: "study",
        exits: [{ direction: "west", to: "kitchen", door: "study door" }],
        places: ["desk 1", "drawer 1"],
      },
    ],
    [
      "cellar",
      {
        name: "cellar",
        exits: [{ direction: "north", to: "kitchen", door: "cellar door" }],
        places: ["shelf 1"],
      },
    ],
  ]),
  places: new Map(
    (
      [
        { name: "counter 1", kind: "counter", room: "kitchen", holding: "on", lamps: [] },
        {
          name: "fridge 1",
          kind: "fridge",
          room: "kitchen",
          holding: "inside",
          treatment: "cool",
          lamps: [],
        },
        { name: "sink 1", kind: "sink", room: "kitchen", holding: "in", treatment: "clean", lamps: [] },
        { name: "stove 1", kind: "stove", room: "kitchen", holding: "on", treatment: "heat", lamps: [] },
        { name: "desk 1", kind: "desk", room: "study", holding: "on", lamps: ["lamp 1"] },
        { name: "drawer 1", kind: "drawer", room: "study", holding: "inside", lamps: [] },
        { name: "shelf 1", kind: "shelf", room: "cellar", holding: "on", lamps: [] },
      ] as const
    ).map((place) => [place.name, place]),
  ),
  doors: new Map([
    ["study door", { name: "study door", rooms: ["kitchen", "study"] }],
    ["cellar door", { name: "cellar door", rooms: ["kitchen", "cellar"], key: "brass key", metal: "brass" }],
  ]),
  things: new Map(
    (
      [
        { name: "mug 1", kind: "mug" },
        { name: "mug 2", kind: "mug" },
        { name: "book 1", kind: "book" },
        { name: "brass key", kind: "key" },
        { name: "iron key", kind: "key" },
      ] as const
    ).map((thing) => [thing.name, thing]),
  ),
  lamps: new Map([["lamp 1", "desk 1"]]),
};

export const SMALL_HOUSE_START: HouseState = {
  room: "kitchen",
  place: undefined,
  whereabouts: new Map([
    ["mug 1", "counter 1"],
    ["mug 2", "counter 1"],
    ["book 1", "shelf 1"],
    ["brass key", "drawer 1"],
    ["iron key", "counter 1"],
  ]),
  open: new Set(),
  unlocked: new Set(),
  clean: new Set(),
  warmth: new Map(),
  lit: new Set(),
  examined: new Set(),
};

/** The state after actions that must all be possible. */
export function stateAfter(
  actions: readonly Action[],
  from = SMALL_HOUSE_START,
  house = SMALL_HOUSE,
): HouseState {
  return actions.reduce((state, action) => {
    const outcome = applyAction(house, state, action);
    if (outcome.refusal !== undefined) {
      throw new TypeError(`${JSON.stringify(action)} was refused: ${JSON.stringify(outcome.refusal)}`);
    }
    return outcome.state;
  }, from);
}
