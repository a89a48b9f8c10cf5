/** Reviews of products. They praise or blame without naming attributes, so that no reward depends on them. */

import type { Random } from "@hone/core";
import type { Review } from "./product.ts";

/** Titles and texts by the number of stars. */
const OPINIONS: Readonly<Record<number, readonly (readonly [title: string, body: string])[]>> = {
  5: [
    ["Exactly what I wanted", "Arrived early and looks just like the pictures. I ordered a second one."],
    ["Love it", "I have used it every day for a month and would buy it again."],
    ["Great gift", "My sister was delighted with it."],
  ],
  4: [
    ["Good value", "Does what it should. The packing could be better."],
    ["Nearly perfect", "Very pleased, though the delivery took a week."],
  ],
  3: [
    ["It is all right", "Neither good nor bad for this price."],
    ["As expected", "Fine for now and then, I would not use it daily."],
  ],
  2: [["Not for me", "It looked better on the screen, so I sent it back."]],
  1: [["Disappointed", "Mine came damaged, and the shop never answered."]],
};

/** Stars as they are drawn: most people who write are content. */
const STARS = [5, 5, 5, 4, 4, 3, 2, 1] as const;
const MAX_REVIEWS = 3;

export function reviewsOf(random: Random): Review[] {
  return Array.from({ length: random.nextInt(MAX_REVIEWS + 1) }, () => {
    const score = random.pick(STARS);
    const [title, body] = random.pick(OPINIONS[score]!);
    return { title, score, body };
  });
}
