import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidInputError } from "./errors.ts";
import {
  compareSlots,
  groupIdOf,
  parseSlotKey,
  rolloutIdOf,
  runIdOf,
  type Slot,
  Split,
  slotKey,
  turnSeed,
} from "./ids.ts";

const slot: Slot = { split: Split.train, step: 3, task: 17, index: 5 };

test("runIdOf() joins name and sequence number, and refuses names that cannot be a token of a subject", () => {
  assert.equal(runIdOf("frozen-lake", 12), "frozen-lake-12");
  for (const name of ["", "Upper", "dots.here", "a".repeat(41), "space here"]) {
    assert.throws(() => runIdOf(name, 1), InvalidInputError);
  }
});

test("parseSlotKey() reads what slotKey() writes, and refuses all other texts", () => {
  assert.deepEqual(parseSlotKey(slotKey(slot)), slot);
  for (const key of ["", "train.1.2", "other.1.2.3", "train.1.2.3.4", "train.-1.2.3"]) {
    assert.throws(() => parseSlotKey(key), InvalidInputError);
  }
});

test("the rollouts of a group have the same groupIdOf() and different rolloutIdOf()", () => {
  const sibling = { ...slot, index: 6 };
  assert.equal(groupIdOf("run-1", slot), groupIdOf("run-1", sibling));
  assert.notEqual(rolloutIdOf("run-1", slot), rolloutIdOf("run-1", sibling));
});

test("compareSlots() orders by split, step, task and index as numbers", () => {
  const slots: Slot[] = [
    { ...slot, task: 10 },
    { ...slot, task: 9, index: 10 },
    { ...slot, task: 9, index: 9 },
    { ...slot, step: 2 },
  ];
  assert.deepEqual(slots.sort(compareSlots).map(slotKey), [
    "train.2.17.5",
    "train.3.9.9",
    "train.3.9.10",
    "train.3.10.5",
  ]);
});

test("turnSeed() differs by slot, turn and purpose", () => {
  const seeds = [
    turnSeed(7, slot, 0),
    turnSeed(7, slot, 1),
    turnSeed(7, { ...slot, index: 4 }, 0),
    turnSeed(7, slot, 0, "tool"),
    turnSeed(8, slot, 0),
  ];
  assert.equal(new Set(seeds).size, seeds.length);
});
