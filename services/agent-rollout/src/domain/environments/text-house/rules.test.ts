import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CARRIED, type HouseState, Warmth } from "./house.ts";
import { legalActions } from "./legal-actions.ts";
import { type Action, applyAction, type Refusal } from "./rules.ts";
import { SMALL_HOUSE, SMALL_HOUSE_START, stateAfter } from "./testing.ts";

const toCounter: Action = { kind: "approach", place: "counter 1" };
const takeMug: Action = { kind: "take", thing: "mug 1", place: "counter 1" };
const toStudy: readonly Action[] = [
  { kind: "open", name: "study door" },
  { kind: "move", direction: "east" },
];
const toBrassKey: readonly Action[] = [
  ...toStudy,
  { kind: "approach", place: "drawer 1" },
  { kind: "open", name: "drawer 1" },
];
const takeBrassKey: Action = { kind: "take", thing: "brass key", place: "drawer 1" };
const unlockCellar: Action = { kind: "unlock", door: "cellar door", key: "brass key" };

function refusalOf(state: HouseState, action: Action): Refusal | undefined {
  const { state: after, refusal } = applyAction(SMALL_HOUSE, state, action);
  assert.equal(after, state);
  return refusal;
}
const impossible: Refusal = { kind: "impossible" };

describe("applyAction()", () => {
  test("things are taken and put only where the player stands", () => {
    assert.deepEqual(refusalOf(SMALL_HOUSE_START, takeMug), impossible);
    const state = stateAfter([toCounter, takeMug]);
    assert.equal(state.whereabouts.get("mug 1"), CARRIED);
    assert.deepEqual(refusalOf(state, { kind: "put", thing: "mug 1", place: "stove 1" }), impossible);
    assert.deepEqual(refusalOf(state, { kind: "put", thing: "mug 2", place: "counter 1" }), impossible);
    const atStove = stateAfter(
      [
        { kind: "approach", place: "stove 1" },
        { kind: "put", thing: "mug 1", place: "stove 1" },
      ],
      state,
    );
    assert.equal(atStove.whereabouts.get("mug 1"), "stove 1");
  });

  test("never changes the state that it was given", () => {
    const before = structuredClone(SMALL_HOUSE_START);
    stateAfter([toCounter, takeMug, ...toBrassKey, takeBrassKey]);
    assert.deepEqual(SMALL_HOUSE_START, before);
  });

  test("the player carries one object and any number of keys", () => {
    const withMug = stateAfter([toCounter, takeMug]);
    assert.deepEqual(refusalOf(withMug, { kind: "take", thing: "mug 2", place: "counter 1" }), {
      kind: "hands_full",
      held: "mug 1",
    });
    const takeIron: Action = { kind: "take", thing: "iron key", place: "counter 1" };
    const state = stateAfter([takeIron, ...toBrassKey, takeBrassKey], withMug);
    assert.deepEqual(
      [...state.whereabouts].filter(([, where]) => where === CARRIED).map(([name]) => name),
      ["mug 1", "brass key", "iron key"],
    );
  });

  test("what is in a closed place can be neither taken nor put there", () => {
    const state = stateAfter(toBrassKey.slice(0, -1));
    assert.deepEqual(refusalOf(state, takeBrassKey), { kind: "closed", name: "drawer 1" });
    const withKey = stateAfter([...toBrassKey, takeBrassKey, { kind: "close", name: "drawer 1" }]);
    assert.deepEqual(refusalOf(withKey, { kind: "put", thing: "brass key", place: "drawer 1" }), {
      kind: "closed",
      name: "drawer 1",
    });
  });

  test("a closed door has to be opened, and a locked one to be unlocked by its key before that", () => {
    assert.deepEqual(refusalOf(SMALL_HOUSE_START, { kind: "move", direction: "east" }), {
      kind: "closed",
      name: "study door",
    });
    const locked = { kind: "locked", name: "cellar door" } as const;
    assert.deepEqual(refusalOf(SMALL_HOUSE_START, { kind: "move", direction: "south" }), locked);
    assert.deepEqual(refusalOf(SMALL_HOUSE_START, { kind: "open", name: "cellar door" }), locked);
    assert.deepEqual(refusalOf(SMALL_HOUSE_START, unlockCellar), impossible);
    const withIron = stateAfter([toCounter, { kind: "take", thing: "iron key", place: "counter 1" }]);
    assert.deepEqual(refusalOf(withIron, { kind: "unlock", door: "cellar door", key: "iron key" }), {
      kind: "wrong_key",
      key: "iron key",
    });
    const state = stateAfter([
      ...toBrassKey,
      takeBrassKey,
      { kind: "move", direction: "west" },
      unlockCellar,
    ]);
    assert.equal(refusalOf(state, { kind: "move", direction: "south" })?.kind, "closed");
    const inCellar = stateAfter(
      [
        { kind: "open", name: "cellar door" },
        { kind: "move", direction: "south" },
      ],
      state,
    );
    assert.equal(inCellar.room, "cellar");
  });

  test("a door without a lock cannot be unlocked", () => {
    const state = stateAfter([...toBrassKey, takeBrassKey]);
    assert.deepEqual(refusalOf(state, { kind: "unlock", door: "study door", key: "brass key" }), impossible);
  });

  test("a door can be closed from either side and stays unlocked", () => {
    const state = stateAfter([...toStudy, { kind: "close", name: "study door" }]);
    assert.equal(state.open.has("study door"), false);
    assert.deepEqual(refusalOf(state, { kind: "move", direction: "west" }), {
      kind: "closed",
      name: "study door",
    });
  });

  test("appliances clean, heat and cool what is carried, and heat and cold end each other", () => {
    const treat = (treatment: "clean" | "heat" | "cool", place: string): readonly Action[] => [
      { kind: "approach", place },
      { kind: "treat", treatment, thing: "mug 1", place },
    ];
    const hot = stateAfter([toCounter, takeMug, ...treat("clean", "sink 1"), ...treat("heat", "stove 1")]);
    assert.ok(hot.clean.has("mug 1"));
    assert.equal(hot.warmth.get("mug 1"), Warmth.hot);
    const cold = stateAfter(treat("cool", "fridge 1"), hot);
    assert.equal(cold.warmth.get("mug 1"), Warmth.cold);
    assert.ok(cold.clean.has("mug 1"));
    assert.deepEqual(
      refusalOf(cold, { kind: "treat", treatment: "heat", thing: "mug 1", place: "fridge 1" }),
      impossible,
    );
    assert.deepEqual(
      refusalOf(cold, { kind: "treat", treatment: "cool", thing: "mug 2", place: "fridge 1" }),
      impossible,
    );
  });

  test("keys cannot be cleaned", () => {
    const state = stateAfter([
      toCounter,
      { kind: "take", thing: "iron key", place: "counter 1" },
      { kind: "approach", place: "sink 1" },
    ]);
    assert.deepEqual(
      refusalOf(state, { kind: "treat", treatment: "clean", thing: "iron key", place: "sink 1" }),
      impossible,
    );
  });

  test("an object counts as examined only where a lamp is on", () => {
    const examine: Action = { kind: "examine", name: "mug 1" };
    const atDesk = stateAfter([toCounter, takeMug, ...toStudy, { kind: "approach", place: "desk 1" }]);
    assert.equal(stateAfter([examine], atDesk), atDesk);
    const lit = stateAfter([{ kind: "use", lamp: "lamp 1" }], atDesk);
    assert.deepEqual([...stateAfter([examine], lit).examined], ["mug 1"]);
    const elsewhere = stateAfter([{ kind: "approach", place: "drawer 1" }, examine], lit);
    assert.equal(elsewhere.examined.size, 0);
    assert.deepEqual(refusalOf(elsewhere, { kind: "use", lamp: "lamp 1" }), impossible);
  });

  test("an action that changes nothing returns the same state", () => {
    const state = stateAfter([...toStudy]);
    for (const action of [
      { kind: "look" },
      { kind: "inventory" },
      { kind: "open", name: "study door" },
    ] as const) {
      assert.equal(stateAfter([action], state), state);
    }
  });

  test("names that are not in the house are impossible, those of every object's prototype included", () => {
    const state = stateAfter([toCounter]);
    for (const name of ["__proto__", "constructor", "toString", "", "you", "mug 9"]) {
      const actions: readonly Action[] = [
        { kind: "approach", place: name },
        { kind: "open", name },
        { kind: "close", name },
        { kind: "take", thing: name, place: "counter 1" },
        { kind: "take", thing: "mug 1", place: name },
        { kind: "put", thing: name, place: "counter 1" },
        { kind: "treat", treatment: "clean", thing: name, place: name },
        { kind: "unlock", door: name, key: name },
        { kind: "unlock", door: "cellar door", key: name },
        { kind: "examine", name },
        { kind: "use", lamp: name },
      ];
      for (const action of actions)
        assert.deepEqual(refusalOf(state, action), impossible, JSON.stringify(action));
    }
  });
});

describe("legalActions()", () => {
  test("are all possible, and all but those that only show something change the state", () => {
    const state = stateAfter([toCounter, takeMug]);
    const actions = legalActions(SMALL_HOUSE, state);
    for (const action of actions) {
      const outcome = applyAction(SMALL_HOUSE, state, action);
      assert.equal(outcome.refusal, undefined);
      const isShowing = ["look", "inventory", "examine"].includes(action.kind);
      assert.equal(outcome.state === state, isShowing, JSON.stringify(action));
    }
    assert.deepEqual(
      actions.filter(({ kind }) => kind !== "approach"),
      [
        { kind: "open", name: "study door" },
        { kind: "take", thing: "iron key", place: "counter 1" },
        { kind: "put", thing: "mug 1", place: "counter 1" },
        { kind: "examine", name: "mug 1" },
        { kind: "examine", name: "mug 2" },
        { kind: "examine", name: "iron key" },
        { kind: "inventory" },
        { kind: "look" },
      ],
    );
  });
});
