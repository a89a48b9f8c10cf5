/**
 * What houses are made of: the kinds of rooms, places, objects and keys, with what each is good for.
 *
 * A place is a piece of furniture or an appliance, on or in which objects lie. Every house has a kitchen, so that there is always
 * something that cleans, heats and cools.
 */

/** Changes that an appliance makes to an object. */
export const Treatment = {
  clean: "clean",
  heat: "heat",
  cool: "cool",
} as const;
export type Treatment = (typeof Treatment)[keyof typeof Treatment];

/** How objects lie there. */
export const Holding = {
  /** Objects lie on it, in sight. */
  on: "on",
  /** Objects lie in it, in sight. */
  in: "in",
  /** Objects lie in it, out of sight while it is closed. */
  inside: "inside",
} as const;
export type Holding = (typeof Holding)[keyof typeof Holding];

export interface PlaceKind {
  readonly holding: Holding;
  /** What it does to objects; a place with a treatment is no target of a task. */
  readonly treatment?: Treatment;
}

export const PLACE_KINDS = {
  armchair: { holding: Holding.on },
  basket: { holding: Holding.in },
  bed: { holding: Holding.on },
  bench: { holding: Holding.on },
  box: { holding: Holding.inside },
  cabinet: { holding: Holding.inside },
  chest: { holding: Holding.inside },
  counter: { holding: Holding.on },
  desk: { holding: Holding.on },
  drawer: { holding: Holding.inside },
  dresser: { holding: Holding.on },
  fridge: { holding: Holding.inside, treatment: Treatment.cool },
  microwave: { holding: Holding.inside, treatment: Treatment.heat },
  shelf: { holding: Holding.on },
  sink: { holding: Holding.in, treatment: Treatment.clean },
  sofa: { holding: Holding.on },
  stove: { holding: Holding.on, treatment: Treatment.heat },
  table: { holding: Holding.on },
  wardrobe: { holding: Holding.inside },
} as const satisfies Readonly<Record<string, PlaceKind>>;
export type PlaceKindName = keyof typeof PLACE_KINDS;

/** Where objects of a kind are mostly kept. */
export const Home = {
  kitchen: "kitchen",
  bath: "bath",
  living: "living",
} as const;
export type Home = (typeof Home)[keyof typeof Home];

export interface RoomKind {
  readonly home: Home;
  /** Always there, one of each. */
  readonly has: readonly PlaceKindName[];
  /** Each may be there, with a chance of one in two; a kind may stand here several times. */
  readonly mayHave: readonly PlaceKindName[];
}

export const ROOM_KINDS = {
  kitchen: {
    home: Home.kitchen,
    has: ["counter", "fridge", "sink", "cabinet", "drawer"],
    mayHave: ["cabinet", "cabinet", "drawer", "drawer", "table", "shelf"],
  },
  bedroom: { home: Home.living, has: ["bed", "dresser"], mayHave: ["drawer", "drawer", "desk", "wardrobe"] },
  bathroom: { home: Home.bath, has: ["sink", "cabinet"], mayHave: ["shelf", "basket", "cabinet"] },
  "living room": {
    home: Home.living,
    has: ["sofa", "table"],
    mayHave: ["armchair", "shelf", "drawer", "cabinet"],
  },
  study: { home: Home.living, has: ["desk", "shelf"], mayHave: ["drawer", "drawer", "armchair", "box"] },
  hallway: { home: Home.living, has: ["bench"], mayHave: ["wardrobe", "drawer", "basket", "shelf"] },
  "dining room": { home: Home.kitchen, has: ["table", "cabinet"], mayHave: ["table", "drawer", "shelf"] },
  pantry: { home: Home.kitchen, has: ["shelf"], mayHave: ["shelf", "basket", "box"] },
  "laundry room": { home: Home.bath, has: ["sink", "basket"], mayHave: ["shelf", "basket", "bench"] },
  garage: { home: Home.living, has: ["bench", "shelf"], mayHave: ["box", "cabinet", "box"] },
  cellar: { home: Home.kitchen, has: ["shelf", "chest"], mayHave: ["box", "shelf", "chest"] },
  attic: { home: Home.living, has: ["chest", "box"], mayHave: ["box", "armchair", "chest"] },
} as const satisfies Readonly<Record<string, RoomKind>>;
export type RoomName = keyof typeof ROOM_KINDS;

export interface ObjectKind {
  readonly home: Home;
  /** The appliances that take it. */
  readonly treatments: readonly Treatment[];
  /** Whether a task may ask to examine it in the light of a lamp. */
  readonly isForReading?: true;
}

const all = [Treatment.clean, Treatment.heat, Treatment.cool] as const;
const food = { home: Home.kitchen, treatments: all } as const;
const dish = { home: Home.kitchen, treatments: all } as const;
const cutlery = { home: Home.kitchen, treatments: [Treatment.clean] } as const;
const paper = { home: Home.living, treatments: [], isForReading: true } as const;
const thing = { home: Home.living, treatments: [] } as const;

export const OBJECT_KINDS = {
  apple: food,
  book: paper,
  bottle: { home: Home.kitchen, treatments: [Treatment.clean, Treatment.cool] },
  bowl: dish,
  bun: { home: Home.kitchen, treatments: [Treatment.heat, Treatment.cool] },
  candle: thing,
  carrot: food,
  cloth: { home: Home.bath, treatments: [Treatment.clean] },
  coin: { home: Home.living, treatments: [Treatment.clean], isForReading: true },
  egg: food,
  fork: cutlery,
  glass: { home: Home.kitchen, treatments: [Treatment.clean, Treatment.cool] },
  knife: cutlery,
  letter: paper,
  map: paper,
  mug: dish,
  newspaper: paper,
  pan: { home: Home.kitchen, treatments: [Treatment.clean] },
  pen: thing,
  photo: paper,
  pillow: thing,
  plate: dish,
  potato: food,
  ring: { home: Home.living, treatments: [Treatment.clean], isForReading: true },
  soap: { home: Home.bath, treatments: [] },
  spoon: cutlery,
  tomato: food,
  towel: { home: Home.bath, treatments: [] },
  vase: { home: Home.living, treatments: [Treatment.clean] },
  watch: { home: Home.living, treatments: [], isForReading: true },
} as const satisfies Readonly<Record<string, ObjectKind>>;
export type ObjectKindName = keyof typeof OBJECT_KINDS;

/** The kind of all keys, as tasks name it; a single key is called by its metal, such as "brass key". */
export const KEY = "key";

/** The appliances that take an object of a kind; none take a key. */
export function treatmentsOf(kind: ObjectKindName | typeof KEY): readonly Treatment[] {
  return kind === KEY ? [] : OBJECT_KINDS[kind].treatments;
}

/** Metals of keys and locks; there is at most one key of each. */
export const METALS = ["brass", "iron", "silver", "copper", "steel", "bronze", "gold", "tin"] as const;
export type Metal = (typeof METALS)[number];

export const DIRECTIONS = ["north", "east", "south", "west"] as const;
export type Direction = (typeof DIRECTIONS)[number];

export function oppositeOf(direction: Direction): Direction {
  return DIRECTIONS[(DIRECTIONS.indexOf(direction) + 2) % DIRECTIONS.length]!;
}
