import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { commandOf, parseCommand } from "./commands.ts";
import { drawStart } from "./generator.ts";
import type { HouseState } from "./house.ts";
import { legalActions } from "./legal-actions.ts";
import { type Action, applyAction } from "./rules.ts";
import { TASK_KINDS } from "./tasks.ts";
import { SMALL_HOUSE, SMALL_HOUSE_START, stateAfter } from "./testing.ts";

const parse = (text: string, state: HouseState = SMALL_HOUSE_START) => parseCommand(SMALL_HOUSE, state, text);

const atCounter = stateAfter([{ kind: "approach", place: "counter 1" }]);
const carrying = stateAfter(
  [
    { kind: "take", thing: "mug 1", place: "counter 1" },
    { kind: "take", thing: "iron key", place: "counter 1" },
  ],
  atCounter,
);

describe("parseCommand()", () => {
  test("reads every legal command of drawn houses as the action that it was written from", () => {
    for (let seed = 0; seed < 40; seed++) {
      const options = {
        rooms: 5,
        objects: 20,
        lockedDoors: 2,
        tasks: TASK_KINDS,
        minSolutionSteps: 1,
        maxSteps: 100,
      };
      const { house, state: start } = drawStart(seed, options);
      const random = new Random(seed);
      for (let step = 0, state = start; step < 30; step++) {
        const actions = legalActions(house, state);
        for (const action of actions) {
          assert.deepEqual(parseCommand(house, state, commandOf(house, action)), action);
        }
        state = applyAction(house, state, random.pick(actions)).state;
      }
    }
  });

  test("ignores case, articles, punctuation and white space", () => {
    const expected: Action = { kind: "take", thing: "mug 1", place: "counter 1" };
    for (const text of [
      "take mug 1 from counter 1",
      "  TAKE the Mug 1\tfrom\n the COUNTER 1 . ",
      "> take mug1 from counter1!",
      "Please take the mug 1 from the counter 1.",
    ]) {
      assert.deepEqual(parse(text, atCounter), expected, text);
    }
  });

  const synonyms: ReadonlyArray<readonly [Action, ...string[]]> = [
    [{ kind: "look" }, "look", "L", "look around"],
    [{ kind: "inventory" }, "inventory", "i", "inv"],
    [
      { kind: "move", direction: "east" },
      "go east",
      "east",
      "e",
      "walk to the east",
      "go to study",
      "enter the study",
      "go through the study door",
      "move east",
    ],
    [{ kind: "approach", place: "fridge 1" }, "go to fridge 1", "walk to the fridge", "approach fridge"],
    [
      { kind: "take", thing: "iron key", place: "counter 1" },
      "take iron key",
      "pick up the key",
      "get key from counter",
      "grab iron key off the counter 1",
    ],
    [{ kind: "close", name: "study door" }, "close study door", "shut the study door"],
    [{ kind: "examine", name: "counter 1" }, "examine counter 1", "look at the counter", "inspect counter"],
  ];
  for (const [action, ...texts] of synonyms) {
    test(`reads ${texts.join(", ")} as the same action`, () => {
      for (const text of texts) assert.deepEqual(parse(text, atCounter), action, text);
    });
  }

  test("reads what is done with things that are carried", () => {
    const put: Action = { kind: "put", thing: "mug 1", place: "counter 1" };
    for (const text of [
      "put mug on counter",
      "put mug 1 in/on counter 1",
      "drop the mug",
      "move mug 1 to counter 1",
      "place the mug onto the counter",
    ]) {
      assert.deepEqual(parse(text, carrying), put, text);
    }
    const treat = { kind: "treat", thing: "mug 1" } as const;
    assert.deepEqual(parse("wash mug in the sink 1", carrying), {
      ...treat,
      treatment: "clean",
      place: "sink 1",
    });
    assert.deepEqual(parse("warm up mug 1 using stove 1", carrying), {
      ...treat,
      treatment: "heat",
      place: "stove 1",
    });
    assert.deepEqual(parse("chill mug 1 with fridge 1", carrying), {
      ...treat,
      treatment: "cool",
      place: "fridge 1",
    });
    const unlock: Action = { kind: "unlock", door: "cellar door", key: "iron key" };
    for (const text of [
      "unlock cellar door with iron key",
      "unlock the cellar door",
      "unlock cellar door using the key",
    ]) {
      assert.deepEqual(parse(text, carrying), unlock, text);
    }
    assert.deepEqual(parse("examine mug 1 under the lamp 1", carrying), { kind: "examine", name: "mug 1" });
  });

  test("a kind is not enough where several things can be meant", () => {
    const action = parse("take mug", atCounter)!;
    assert.deepEqual(action, { kind: "take", thing: "mug", place: "counter 1" });
    assert.equal(applyAction(SMALL_HOUSE, atCounter, action).refusal?.kind, "impossible");
  });

  test("takes no rubbish for a command, and throws for none", () => {
    const rubbish = [
      "",
      " \n\t",
      "\u0000\u0001\u001b[31m",
      "fly to the moon",
      "🐢🏠",
      "take",
      "go to",
      "put on",
      "look mug 1",
      "constructor",
      "__proto__",
      `take mug 1 from ${"counter 1 ".repeat(30)}`,
      "take ".repeat(100_000),
      "a".repeat(1_000_000),
      `${"\u0000".repeat(500)}look`,
      "\ud800",
    ];
    for (const text of rubbish) assert.equal(parse(text, carrying), undefined, text.slice(0, 40));
  });

  test("names of every object's prototype are names of nothing", () => {
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"]) {
      for (const text of [
        `take ${name}`,
        `go to ${name}`,
        `put ${name} on ${name}`,
        `unlock ${name} with ${name}`,
        `open ${name}`,
        `use ${name}`,
        `examine ${name}`,
        `clean ${name} with ${name}`,
      ]) {
        const action = parse(text, carrying);
        assert.ok(action !== undefined, text);
        assert.equal(applyAction(SMALL_HOUSE, carrying, action).refusal?.kind, "impossible", text);
      }
    }
  });

  test("control characters between words do no harm", () => {
    assert.deepEqual(parse("go\u0000to\u0007fridge\u001b1"), { kind: "approach", place: "fridge 1" });
  });
});
