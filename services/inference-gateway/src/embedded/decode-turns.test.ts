import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DecodeTurns } from "./decode-turns.ts";

const item = (name: string) => ({ name, sequence: {} });
const namesOf = (runs: readonly (readonly { name: string }[])[]) =>
  runs.map((run) => run.map(({ name }) => name).join("")).join();

describe("DecodeTurns", () => {
  test("computes all runs of a step where turns have one step, and a single run always", () => {
    const [a, b] = [[item("a")], [item("b")]];
    assert.equal(namesOf(new DecodeTurns(1).choose([a, b])), "a,b");
    const turns = new DecodeTurns(3);
    for (let step = 0; step < 7; step++) assert.equal(namesOf(turns.choose([a])), "a");
  });

  test("lets each run decode for the steps of a turn, and then the one that has waited longest", () => {
    const turns = new DecodeTurns(2);
    const runs = [[item("a")], [item("b")], [item("c")]];
    const chosen = Array.from({ length: 9 }, () => namesOf(turns.choose(runs)));
    assert.equal(chosen.join(""), "aabbccaab");
  });

  test("goes on with most of a turn's sequences where the runs are divided anew, and with the next run when all have ended", () => {
    const turns = new DecodeTurns(4);
    const [a, b, c, d] = [item("a"), item("b"), item("c"), item("d")];
    assert.equal(
      namesOf(
        turns.choose([
          [a, b],
          [c, d],
        ]),
      ),
      "ab",
    );
    assert.equal(namesOf(turns.choose([[c], [d, a, b]])), "dab");
    assert.equal(namesOf(turns.choose([[c], [d]])), "d");
    assert.equal(namesOf(turns.choose([[c], [item("e")]])), "c");
  });

  test("lets nobody wait for sequences that come later", () => {
    const turns = new DecodeTurns(2);
    const waiting = [item("w")];
    const first = [item("n")];
    turns.choose([first, waiting]);
    turns.choose([first, waiting]);
    assert.equal(namesOf(turns.choose([[item("n")], waiting])), "w");
  });
});
