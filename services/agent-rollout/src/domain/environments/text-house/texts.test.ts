import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { parseCommand } from "./commands.ts";
import { drawStart } from "./generator.ts";
import type { HouseState } from "./house.ts";
import { legalActions } from "./legal-actions.ts";
import { OBJECT_KINDS, type ObjectKindName } from "./lexicon.ts";
import { applyAction } from "./rules.ts";
import { TASK_KINDS, type Task } from "./tasks.ts";
import { SMALL_HOUSE, SMALL_HOUSE_START } from "./testing.ts";
import {
  availableActions,
  introduction,
  NOT_UNDERSTOOD,
  pluralOf,
  resultText,
  TASK_DONE,
  taskText,
} from "./texts.ts";
import { HOUSE_VOCABULARY, wordsOf } from "./vocabulary.ts";

/** What the commands are answered, one after another. */
function answersTo(commands: readonly string[]): readonly string[] {
  let state: HouseState = SMALL_HOUSE_START;
  return commands.map((command) => {
    const action = parseCommand(SMALL_HOUSE, state, command) ?? assert.fail(`"${command}" is no command`);
    const before = state;
    const outcome = applyAction(SMALL_HOUSE, before, action);
    state = outcome.state;
    return resultText(SMALL_HOUSE, before, action, outcome);
  });
}

const DIALOGUE: ReadonlyArray<readonly [command: string, answer: string]> = [
  [
    "look",
    "You are in the kitchen. You see counter 1, fridge 1, sink 1, stove 1. The study is to the east, behind the closed study door. The cellar is to the south, behind the locked cellar door, which has a brass lock.",
  ],
  ["go east", "The study door is closed."],
  ["go south", "The cellar door is locked."],
  ["go north", "Nothing happens."],
  ["go to counter 1", "You go to the counter 1. On the counter 1 you see mug 1, mug 2, iron key."],
  ["take iron key from counter 1", "You take the iron key from the counter 1."],
  ["examine iron key", "The iron key may fit an iron lock."],
  ["unlock cellar door with iron key", "The iron key does not fit."],
  [
    "examine cellar door",
    "The cellar is to the south, behind the locked cellar door, which has a brass lock.",
  ],
  ["take mug 2 from counter 1", "You take the mug 2 from the counter 1."],
  ["take mug 1 from counter 1", "You carry the mug 2 already."],
  ["go to stove 1", "You go to the stove 1. On the stove 1 you see nothing."],
  ["heat mug 2 with stove 1", "You heat the mug 2 with the stove 1. It is hot now."],
  ["heat mug 2 with stove 1", "The mug 2 is already hot."],
  ["examine mug 2", "The mug 2 is dirty and hot."],
  ["open study door", "You open the study door."],
  ["open study door", "The study door is already open."],
  [
    "go east",
    "You go east. You are in the study. You see desk 1, drawer 1. The kitchen is to the west, through the open study door.",
  ],
  ["go to drawer 1", "You go to the drawer 1. The drawer 1 is closed."],
  ["take brass key from drawer 1", "The drawer 1 is closed."],
  ["close drawer 1", "The drawer 1 is already closed."],
  ["open drawer 1", "You open the drawer 1. In the drawer 1 you see brass key."],
  ["take brass key from drawer 1", "You take the brass key from the drawer 1."],
  ["examine drawer 1", "In the drawer 1 you see nothing."],
  ["inventory", "You carry mug 2, brass key, iron key."],
  ["go to desk 1", "You go to the desk 1. On the desk 1 you see lamp 1."],
  ["go to desk 1", "You are already at the desk 1."],
  ["examine lamp 1", "The lamp 1 is off."],
  ["use lamp 1", "You turn on the lamp 1."],
  ["use lamp 1", "The lamp 1 is already on."],
  ["examine mug 2", "In the light of the lamp 1 you see the mug 2 well. The mug 2 is dirty and hot."],
  ["put mug 2 on desk 1", "You put the mug 2 on the desk 1."],
  ["examine desk 1", "On the desk 1 you see mug 2, lamp 1. The lamp 1 is on."],
  [
    "go west",
    "You go west. You are in the kitchen. You see counter 1, fridge 1, sink 1, stove 1. The study is to the east, through the open study door. The cellar is to the south, behind the locked cellar door, which has a brass lock.",
  ],
  ["unlock cellar door with brass key", "You unlock the cellar door with the brass key."],
  ["unlock cellar door with brass key", "The cellar door is already unlocked."],
  ["open cellar door", "You open the cellar door."],
  [
    "go south",
    "You go south. You are in the cellar. You see shelf 1. The kitchen is to the north, through the open cellar door.",
  ],
  ["go to shelf 1", "You go to the shelf 1. On the shelf 1 you see book 1."],
  ["examine book 1", "You see nothing special about the book 1."],
];

describe("the texts of a house", () => {
  test("tell what each action led to, or why it was impossible", () => {
    assert.deepEqual(
      answersTo(DIALOGUE.map(([command]) => command)),
      DIALOGUE.map(([, answer]) => answer),
    );
  });

  const tasks: ReadonlyArray<readonly [Task, string]> = [
    [{ kind: "put", object: "egg", target: "armchair" }, "put an egg on an armchair"],
    [
      { kind: "put_two", object: "knife", target: "drawer" },
      "find two knives and put them in the same drawer",
    ],
    [{ kind: "put_two", object: "key", target: "desk" }, "find two keys and put them on the same desk"],
    [{ kind: "put_clean", object: "mug", target: "desk" }, "put a clean mug on a desk"],
    [{ kind: "put_hot", object: "apple", target: "box" }, "put a hot apple in a box"],
    [{ kind: "put_cold", object: "egg", target: "basket" }, "put a cold egg in a basket"],
    [{ kind: "examine", object: "book" }, "examine a book in the light of a lamp"],
    [
      { kind: "unlock", door: "cellar door", key: "brass key" },
      "find the brass key and unlock the cellar door with it",
    ],
  ];
  for (const [task, text] of tasks) {
    test(`word a task as "${text}"`, () => assert.equal(taskText(task), text));
  }

  test("use no word outside the vocabulary, and the vocabulary holds no other words", () => {
    const said = [NOT_UNDERSTOOD, TASK_DONE, availableActions([]), ...tasks.map(([task]) => taskText(task))];
    for (const [command, answer] of DIALOGUE) said.push(command, answer);
    for (const kind of Object.keys(OBJECT_KINDS) as ObjectKindName[]) said.push(pluralOf(kind));
    for (let seed = 0; seed < 300; seed++) {
      const options = {
        rooms: 12,
        objects: 60,
        lockedDoors: 4,
        tasks: TASK_KINDS,
        minSolutionSteps: 1,
        maxSteps: 100,
      };
      const { house, state: start, task, solution } = drawStart(seed, options);
      said.push(introduction(house, start, task));
      const random = new Random(seed);
      let state = start;
      // Random actions as often as those of the solution, which leads into all rooms.
      const moves = seed % 2 === 0 ? solution : Array.from({ length: 40 }, () => undefined);
      for (const move of moves) {
        const action = move ?? random.pick(legalActions(house, state));
        const outcome = applyAction(house, state, action);
        said.push(resultText(house, state, action, outcome));
        state = outcome.state;
      }
    }
    const words = new Set(said.flatMap(wordsOf));
    assert.deepEqual([...words].sort(), [...HOUSE_VOCABULARY].sort());
    assert.equal(new Set(HOUSE_VOCABULARY).size, HOUSE_VOCABULARY.length);
  });
});
