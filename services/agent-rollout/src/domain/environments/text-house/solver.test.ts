import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { drawStart, type HouseOptions, type Start } from "./generator.ts";
import { type HouseState, stateKey } from "./house.ts";
import { legalActions } from "./legal-actions.ts";
import { type Action, applyAction } from "./rules.ts";
import { solve } from "./solver.ts";
import { isSolved, TASK_KINDS, type Task, TaskKind } from "./tasks.ts";
import { SMALL_HOUSE, SMALL_HOUSE_START } from "./testing.ts";

const options = (changes: Partial<HouseOptions>): HouseOptions => ({
  rooms: 4,
  objects: 8,
  lockedDoors: 1,
  tasks: TASK_KINDS,
  minSolutionSteps: 1,
  maxSteps: 100,
  ...changes,
});

/** Whether a plan of possible actions solves the task, and nothing before its end does. */
function solves(
  { house, task }: Pick<Start, "house" | "task">,
  from: HouseState,
  plan: readonly Action[],
): boolean {
  let state = from;
  for (const action of plan) {
    assert.equal(isSolved(house, task, state), false);
    const outcome = applyAction(house, state, action);
    assert.equal(outcome.refusal, undefined, JSON.stringify(action));
    assert.notEqual(outcome.state, state, `${JSON.stringify(action)} changes nothing`);
    state = outcome.state;
  }
  return isSolved(house, task, state);
}

/** Whether any actions solve the task in fewer steps: a breadth-first search over all legal actions. */
function hasShorter({ house, task, state: start }: Start, length: number): boolean {
  let states = [start];
  const seen = new Set([stateKey(start)]);
  for (let depth = 1; depth < length; depth++) {
    const next: HouseState[] = [];
    for (const state of states) {
      for (const action of legalActions(house, state)) {
        const { state: reached } = applyAction(house, state, action);
        if (isSolved(house, task, reached)) return true;
        const key = stateKey(reached);
        if (!seen.has(key)) next.push(reached);
        seen.add(key);
      }
    }
    states = next;
  }
  return false;
}

describe("solve()", () => {
  test("finds the plan through a locked door that one would find by hand", () => {
    const task: Task = { kind: TaskKind.put, object: "book", target: "desk" };
    assert.deepEqual(solve(SMALL_HOUSE, task, SMALL_HOUSE_START), [
      { kind: "open", name: "study door" },
      { kind: "move", direction: "east" },
      { kind: "approach", place: "drawer 1" },
      { kind: "open", name: "drawer 1" },
      { kind: "take", thing: "brass key", place: "drawer 1" },
      { kind: "move", direction: "west" },
      { kind: "unlock", door: "cellar door", key: "brass key" },
      { kind: "open", name: "cellar door" },
      { kind: "move", direction: "south" },
      { kind: "approach", place: "shelf 1" },
      { kind: "take", thing: "book 1", place: "shelf 1" },
      { kind: "move", direction: "north" },
      { kind: "move", direction: "east" },
      { kind: "approach", place: "desk 1" },
      { kind: "put", thing: "book 1", place: "desk 1" },
    ]);
  });

  test("finds nothing where the key cannot be reached", () => {
    const whereabouts = new Map(SMALL_HOUSE_START.whereabouts).set("brass key", "shelf 1");
    const task: Task = { kind: TaskKind.unlock, door: "cellar door", key: "brass key" };
    assert.equal(solve(SMALL_HOUSE, task, { ...SMALL_HOUSE_START, whereabouts }), undefined);
  });

  test("needs no actions where the task is solved", () => {
    const task: Task = { kind: TaskKind.put, object: "book", target: "shelf" };
    assert.deepEqual(solve(SMALL_HOUSE, task, SMALL_HOUSE_START), []);
  });

  for (const kind of TASK_KINDS) {
    test(`solves tasks of the kind ${kind}, with no action that changes nothing`, () => {
      for (let seed = 0; seed < 50; seed++) {
        const start = drawStart(seed, options({ tasks: [kind] }));
        assert.equal(start.task.kind, kind);
        assert.ok(solves(start, start.state, start.solution), `seed ${seed}`);
      }
    });
  }

  test("no actions at all solve a task sooner than its plan", () => {
    let checked = 0;
    for (let seed = 0; seed < 150; seed++) {
      const start = drawStart(seed, options({ rooms: 2, objects: 3 }));
      if (start.solution.length > 6) continue;
      assert.equal(hasShorter(start, start.solution.length), false, `seed ${seed}`);
      checked++;
    }
    assert.ok(checked >= 25, `${checked}`);
  });

  test("solves tasks after whatever was done, as nothing can be lost", () => {
    for (let seed = 0; seed < 100; seed++) {
      const start = drawStart(seed, options({ rooms: 5, lockedDoors: 2 }));
      const random = new Random(seed);
      let state = start.state;
      for (let step = 0; step < 60; step++) {
        const next = applyAction(start.house, state, random.pick(legalActions(start.house, state))).state;
        if (!isSolved(start.house, start.task, next)) state = next;
      }
      const plan = solve(start.house, start.task, state);
      assert.ok(plan !== undefined && solves(start, state, plan), `seed ${seed}`);
    }
  });
});
