/** Tasks in sentences. The ends of the sentences, on options and price, have the words of WebShop's synthetic tasks. */

import type { Random } from "@hone/core";
import type { Product } from "../catalogue/product.ts";
import type { Goal } from "../goal.ts";

const MAX_ATTRIBUTES = 3;
/** Limits are multiples of ten dollars: the larger one of two among the next four above the price. */
const LIMIT_STEP = 10;
const LIMITS = 4;

export function makeWebshopGoal(product: Product, random: Random): Goal {
  const attributes = drawAttributes(product.attributes, random);
  const options = product.options.map(({ name, values }) => ({ name, value: random.pick(values) }));
  const priceLimit = drawLimit(product.price[1], random);
  const wanted = { product, attributes, options, priceLimit };
  return { ...wanted, instruction: instructionOf(wanted, random) };
}

function drawAttributes(attributes: readonly string[], random: Random): string[] {
  const count = 1 + random.nextInt(Math.min(MAX_ATTRIBUTES, attributes.length));
  const left = [...attributes];
  return Array.from({ length: count }, () => left.splice(random.nextInt(left.length), 1)[0]!);
}

function drawLimit(price: number, random: Random): number {
  const first = random.nextInt(LIMITS);
  const second = (first + 1 + random.nextInt(LIMITS - 1)) % LIMITS;
  return (Math.floor(price / LIMIT_STEP) + 1 + Math.max(first, second)) * LIMIT_STEP;
}

function instructionOf(
  { product: { query }, attributes, options, priceLimit }: Omit<Goal, "instruction">,
  random: Random,
) {
  const listed = attributes.join(", ");
  const opening = random.pick([
    `Find me ${listed} ${query}`,
    `I am looking for ${query} (${listed})`,
    `As a gift I need ${listed} ${query}`,
    `Please order ${listed} ${query} for me`,
  ]);
  const choices = options.map(({ name, value }) => `${name}: ${value}`).join(", and ");
  const ending = `, and price lower than ${priceLimit.toFixed(2)} dollars`;
  return `${opening}${choices === "" ? "" : ` with ${choices}`}${ending}`;
}
