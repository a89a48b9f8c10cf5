import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Environment, scriptOf } from "@hone/agents";
import { Random } from "@hone/core";
import { FrozenLake, frozenLakeConfigSchema } from "./frozen-lake/frozen-lake.ts";
import { Sokoban, sokobanConfigSchema } from "./sokoban/sokoban.ts";
import { TextHouse, textHouseConfigSchema } from "./text-house/text-house.ts";
import { WebShop, webshopConfigSchema } from "./webshop/webshop.ts";

const SEEDS = 12;
/** More than any of these tasks needs. */
const MAX_STEPS = 200;

const ENVIRONMENTS: Readonly<Record<string, () => Environment>> = {
  "a lake of eight by eight": () =>
    new FrozenLake(frozenLakeConfigSchema.parse({ size: 8, maxSteps: MAX_STEPS })),
  "a room with two boxes": () =>
    new Sokoban(sokobanConfigSchema.parse({ size: 6, boxes: 2, maxSteps: MAX_STEPS })),
  "a shop": () => new WebShop(webshopConfigSchema.parse({})),
  "a house": () => new TextHouse(textHouseConfigSchema.parse({ maxSteps: MAX_STEPS })),
};

describe("the script expert", () => {
  const expert = scriptOf("expert")!;
  for (const [name, make] of Object.entries(ENVIRONMENTS)) {
    test(`solves every task of ${name}`, async () => {
      for (let seed = 0; seed < SEEDS; seed++) {
        const environment = make();
        await environment.reset(seed);
        for (let step = 0; step < MAX_STEPS; step++) {
          const { terminated, truncated } = await environment.step(expert(environment, new Random(seed)));
          if (terminated || truncated) break;
        }
        assert.equal(environment.metrics().success, 1, `seed ${seed}`);
      }
    });
  }

  test("goes on where the task cannot be solved any more", async () => {
    // The box is in a corner, and not on its target.
    const lost: Environment = {
      reset: () => ({ observation: "", info: {} }),
      step: () => ({ observation: "", reward: 0, terminated: false, truncated: false, info: {} }),
      metrics: () => ({}),
      legalActions: () => ["Up", "Left"],
      expertAction: () => undefined,
    };
    assert.equal(expert(lost, new Random(0)), "Up");
  });

  test("says that an environment does not know the way", () => {
    const { expertAction: _, ...ignorant } = {
      ...new FrozenLake(frozenLakeConfigSchema.parse({})),
    } as Environment;
    assert.throws(() => expert(ignorant, new Random(0)), /does not know how its tasks are solved/);
  });
});
