/**
 * Makes the products of a shop from word lists. A product depends on the shop's seed and its own number alone, so a larger
 * shop holds all products of a smaller one.
 *
 * The kinds take turns. About two products in five are close relatives of the one before them of the same kind: the same brand,
 * all attributes but one, other prices and options. To find the right one, a buyer has to look at more than the name.
 */

import { deriveSeed, Random } from "@hone/core";
import { CARE_FAMILIES } from "./care-words.ts";
import { GEAR_FAMILIES } from "./gear-words.ts";
import { HOME_FAMILIES } from "./home-words.ts";
import type { OptionGroup, Product } from "./product.ts";
import { reviewsOf } from "./reviews.ts";
import { WEAR_FAMILIES } from "./wear-words.ts";
import type { Category, Family, Kind } from "./words.ts";

export const FAMILIES: readonly Family[] = [
  ...WEAR_FAMILIES,
  ...HOME_FAMILIES,
  ...CARE_FAMILIES,
  ...GEAR_FAMILIES,
];

/** A kind with all that its products may have. */
interface Line {
  readonly family: Family;
  readonly category: Category;
  readonly kind: Kind;
  readonly attributes: readonly string[];
  readonly options: readonly OptionGroup[];
}

/** What a product's texts are written from. */
interface Draft {
  readonly brand: string;
  readonly attributes: readonly string[];
  readonly options: readonly OptionGroup[];
  readonly price: readonly [number, number];
  readonly use: string;
}

const LINES: readonly Line[] = linesInTurn();

/** Chance of a product to be a close relative of the one before it. */
const RELATED = 0.4;
/** Chance of a product to have two prices. */
const TWO_PRICES = 0.2;
const MIN_ATTRIBUTES = 2;
const MAX_ATTRIBUTES = 6;
/** Chance of a group of options to be offered. */
const OPTION_GROUP = 0.75;
const MAX_VALUES = 6;

export function makeProducts(shopSeed: number, count: number): Product[] {
  const products: Product[] = [];
  const drafts: Draft[] = [];
  const ids = new Set<string>();
  for (let number = 0; number < count; number++) {
    const line = LINES[number % LINES.length]!;
    const random = new Random(deriveSeed(shopSeed, "webshop", "product", number));
    const draft = draw(line, drafts[number - LINES.length], random);
    drafts.push(draft);
    products.push(productOf(line, draft, idOf(random, ids), random));
  }
  return products;
}

/** The kinds in the order in which they take turns: neighbours are of different families. */
function linesInTurn(): Line[] {
  const byFamily = FAMILIES.map((family) =>
    family.categories.flatMap((category) => category.kinds.map((kind) => lineOf(family, category, kind))),
  );
  const most = Math.max(...byFamily.map(({ length }) => length));
  return Array.from({ length: most }, (_, turn) => byFamily.flatMap((lines) => lines[turn] ?? [])).flat();
}

function lineOf(family: Family, category: Category, kind: Kind): Line {
  const { except = [] } = category;
  return {
    family,
    category,
    kind,
    attributes: Object.keys(family.attributes).filter((attribute) => !except.includes(attribute)),
    options: family.options.filter(({ name }) => !except.includes(name)),
  };
}

function draw(line: Line, before: Draft | undefined, random: Random): Draft {
  const isRelated = before !== undefined && random.next() < RELATED;
  return {
    brand: isRelated ? before.brand : random.pick(BRAND_BEGINS) + random.pick(BRAND_ENDS),
    attributes: isRelated ? withOneChanged(before.attributes, line, random) : drawAttributes(line, random),
    options: line.options.flatMap((group) =>
      random.next() < OPTION_GROUP ? [drawValues(group, random)] : [],
    ),
    price: drawPrice(line.kind, random),
    use: random.pick(line.family.uses),
  };
}

function drawAttributes({ attributes }: Line, random: Random): string[] {
  const most = Math.min(MAX_ATTRIBUTES, attributes.length);
  return drawSome(attributes, MIN_ATTRIBUTES + random.nextInt(most - MIN_ATTRIBUTES + 1), random);
}

/** The same attributes, but for one that is exchanged; all of them if the kind has no other. */
function withOneChanged(attributes: readonly string[], line: Line, random: Random): string[] {
  const others = line.attributes.filter((attribute) => !attributes.includes(attribute));
  if (others.length === 0) return [...attributes];
  return attributes.with(random.nextInt(attributes.length), random.pick(others));
}

function drawValues({ name, values }: OptionGroup, random: Random): OptionGroup {
  const most = Math.min(MAX_VALUES, values.length);
  const some = drawSome(values, 2 + random.nextInt(most - 1), random);
  // In the order of the list, so that sizes are shown from small to large.
  return { name, values: values.filter((value) => some.includes(value)) };
}

function drawPrice({ price: [lowest, highest] }: Kind, random: Random): [number, number] {
  // Half of all prices end in 99 cents.
  const cents = random.nextInt(2) === 0 ? 99 : random.nextInt(100);
  const price = lowest + random.nextInt(highest - lowest) + cents / 100;
  if (random.next() >= TWO_PRICES) return [price, price];
  return [price, Math.round((price + 1 + random.nextInt(Math.ceil(price / 2))) * 100) / 100];
}

/** Some of the items, in the order in which they were drawn. */
function drawSome<T>(items: readonly T[], count: number, random: Random): T[] {
  const left = [...items];
  return Array.from({ length: count }, () => left.splice(random.nextInt(left.length), 1)[0]!);
}

const ID_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Ten letters and digits, as WebShop's products have them; `taken` is extended. */
function idOf(random: Random, taken: Set<string>): string {
  for (;;) {
    const id = `B0${Array.from({ length: 8 }, () => ID_DIGITS[random.nextInt(ID_DIGITS.length)]).join("")}`;
    if (!taken.has(id)) {
      taken.add(id);
      return id;
    }
  }
}

function productOf({ family, category, kind }: Line, draft: Draft, id: string, random: Random): Product {
  const { brand, attributes, options, price, use } = draft;
  // A title names two attributes at most: the others stand in the description and the features.
  const named = attributes.slice(0, 2).map(inCapitals);
  const title = `${brand} ${kind.name}, ${named.join(", ")} - for ${use}`;
  const features = attributes.map((attribute) => `${asSentence(attribute)} ${family.attributes[attribute]}`);
  return {
    id,
    title,
    nouns: kind.nouns,
    category: [...category.path, kind.query],
    query: kind.query,
    price,
    attributes,
    options,
    description: descriptionOf(draft, kind, random),
    features: [...features, `Made for ${use}`],
    reviews: reviewsOf(random),
  };
}

function descriptionOf({ brand, attributes, use }: Draft, kind: Kind, random: Random): string {
  const name = kind.name.toLowerCase();
  const [first, second] = attributes;
  const opening = random.pick([
    `${brand} makes the ${name} with ${use} in mind.`,
    `A good companion for ${use}: the ${name} by ${brand}.`,
    `Whoever shops for ${use} will be happy with the ${name} by ${brand}.`,
  ]);
  const praise = random.pick([
    `What buyers like best: ${first}, and also ${second}.`,
    `Designed around two things: ${first} and ${second}.`,
    `We know few others that offer both ${first} and ${second}.`,
  ]);
  return `${opening} ${praise} See the features for the details.`;
}

function inCapitals(text: string): string {
  return text.replaceAll(/(?<!\p{L})\p{Ll}/gu, (letter) => letter.toUpperCase());
}

function asSentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Invented names of brands: a beginning and an end. */
const BRAND_BEGINS = [
  ..."Hal Nor Bel Cor Ven Tam Wil Kes Dor Mar Fen Lun Ost Pel Rav Sil Tor Ulv Yar Zan".split(" "),
];
const BRAND_ENDS = [
  ..."den wick mont vale rin tora lia mar nox stead bury dale fell gate hurst ley mere".split(" "),
];
