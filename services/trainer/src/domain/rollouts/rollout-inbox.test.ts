import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Slot } from "@hone/core";
import { testRollout } from "../../testing/fake-run.ts";
import { FirstGroups } from "../groups/first-groups.ts";
import { RolloutInbox } from "./rollout-inbox.ts";
import type { ScoredRollout } from "./scored-rollout.ts";

const never = new AbortController().signal;

function slot(index: number, step = 1): Slot {
  return { split: "train", step, task: 0, index };
}

function scored(at: Slot, sequence: number, attempt = 1, resumption = 0): ScoredRollout {
  return testRollout(at, { sequence, attempt, resumption });
}

describe("RolloutInbox", () => {
  test("returns rollouts in the order of the slots, whatever their order of arrival", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    const slots = [slot(0), slot(1), slot(2)];
    const collected = inbox.collect(slots, () => undefined, never);
    for (const [i, at] of [slot(2), slot(0), slot(1)].entries()) inbox.offer(scored(at, i + 1));
    assert.deepEqual(
      (await collected).map(({ slot }) => slot.index),
      [0, 1, 2],
    );
    assert.equal(inbox.size, 0);
  });

  test("keeps the first scored episode of a rollout", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    assert.equal(inbox.offer(scored(slot(0), 1, 1)), true);
    assert.equal(inbox.offer(scored(slot(0), 2, 2)), false);
    const [first] = await inbox.collect([slot(0)], () => undefined, never);
    assert.equal(first?.attempt, 1);
  });

  test("needs the stream from the first rollout that nobody has collected yet", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    for (const [i, at] of [slot(0), slot(0, 2), slot(1)].entries()) inbox.offer(scored(at, i + 1));
    await inbox.collect([slot(0), slot(1)], () => undefined, never);
    assert.equal(inbox.nextSequence, 4);
    assert.equal(inbox.neededFrom, 2);
    await inbox.collect([slot(0, 2)], () => undefined, never);
    assert.equal(inbox.neededFrom, 4);
  });

  test("drops what a commit dealt with, and counts its position all the same", () => {
    const inbox = new RolloutInbox(({ step }) => step <= 1, 5);
    assert.equal(inbox.nextSequence, 5);
    assert.equal(inbox.offer(scored(slot(0, 1), 7)), false);
    assert.equal(inbox.size, 0);
    assert.equal(inbox.nextSequence, 8);
  });

  test("prune() drops what became obsolete since it arrived", () => {
    let committed = 0;
    const inbox = new RolloutInbox(({ step }) => step <= committed, 1);
    inbox.offer(scored(slot(0, 1), 1));
    inbox.offer(scored(slot(0, 2), 2));
    committed = 1;
    inbox.prune();
    assert.deepEqual(inbox.missing([slot(0, 1), slot(0, 2)]), [slot(0, 1)]);
  });

  test("reports how many rollouts have arrived, at once and at each arrival", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    inbox.offer(scored(slot(1), 1));
    const told: number[] = [];
    const collected = inbox.collect([slot(0), slot(1)], (count) => told.push(count), never);
    inbox.offer(scored(slot(0), 2));
    await collected;
    assert.deepEqual(told, [1, 2]);
  });

  test("collect() ends with the signal and takes nothing out", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    inbox.offer(scored(slot(0), 1));
    const stopping = new AbortController();
    const collected = inbox.collect([slot(0), slot(1)], () => undefined, stopping.signal);
    stopping.abort(new Error("stop"));
    await assert.rejects(collected, /stop/);
    assert.equal(inbox.size, 1);
  });

  test("collectFirst() takes what arrived before the call into account, and leaves nothing of its slots", async () => {
    const inbox = new RolloutInbox(() => false, 1);
    const slots = [slot(0), slot(1), slot(2)];
    inbox.offer(scored(slot(2), 1));
    inbox.offer(scored(slot(0, 2), 2));
    const first = new FirstGroups(slots, { groups: 1, rollouts: 2 });
    const told: number[] = [];
    const collected = inbox.collectFirst(slots, first, (count) => told.push(count), never);
    inbox.offer(scored(slot(1), 3));
    inbox.offer(scored(slot(0), 4));
    assert.deepEqual(
      (await collected).map(({ slot }) => slot.index),
      [1, 2],
    );
    assert.deepEqual(told.slice(0, 2), [1, 2]);
    assert.deepEqual([inbox.size, inbox.neededFrom], [1, 2]);
  });

  test("counts what was made since a failed run was resumed, and the latest of what it replays", async () => {
    // The run was resumed twice. Step 1 is committed and replayed; the rollouts of step 2 are made again.
    const counts = ({ slot, resumption }: ScoredRollout) => resumption === 2 || slot.step === 1;
    const inbox = new RolloutInbox(() => false, 1, counts);
    assert.equal(inbox.offer(scored(slot(0), 1, 1, 0)), true);
    assert.equal(inbox.offer(scored(slot(0, 2), 2, 1, 1)), false);
    assert.equal(inbox.offer(scored(slot(0), 3, 2, 1)), true);
    assert.equal(inbox.offer(scored(slot(0), 4, 3, 1)), false);
    assert.equal(inbox.offer(scored(slot(0), 5, 4, 0)), false);
    assert.equal(inbox.offer(scored(slot(0, 2), 6, 5, 2)), true);
    const taken = await inbox.collect([slot(0), slot(0, 2)], () => undefined, never);
    assert.deepEqual(
      taken.map(({ attempt }) => attempt),
      [2, 5],
    );
  });
});
