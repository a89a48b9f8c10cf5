import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type ReplicaState, ReplicaStateSchema } from "@hone/proto-gen/policy";
import { chooseReplica } from "./rendezvous.ts";
import { ReplicaDirectory } from "./replica-directory.ts";

const idle = (...names: string[]) => names.map((name) => ({ name, load: 0 }));
const groups = Array.from({ length: 3_000 }, (_, index) => `run/train.1.${index}`);

describe("chooseReplica()", () => {
  test("a group always goes to the same replica, in whatever order they are listed", () => {
    for (const group of groups.slice(0, 200)) {
      const chosen = chooseReplica(group, idle("a", "b", "c"))!.name;
      assert.equal(chooseReplica(group, idle("c", "a", "b"))!.name, chosen);
    }
  });

  test("groups are spread evenly", () => {
    const counts = new Map<string, number>();
    for (const group of groups) {
      const { name } = chooseReplica(group, idle("a", "b", "c", "d"))!;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const count of counts.values()) assert.ok(Math.abs(count - groups.length / 4) < groups.length / 20);
  });

  test("when a replica leaves, only its own groups move", () => {
    for (const group of groups.slice(0, 500)) {
      const before = chooseReplica(group, idle("a", "b", "c"))!.name;
      const after = chooseReplica(group, idle("a", "b"))!.name;
      if (before !== "c") assert.equal(after, before);
    }
  });

  test("no replica gets more than its bounded share, even if all calls belong to one group", () => {
    const loads = new Map([...idle("a", "b", "c")].map(({ name }) => [name, 0]));
    for (let call = 0; call < 900; call++) {
      const { name } = chooseReplica(
        "one group",
        [...loads].map(([name, load]) => ({ name, load })),
      )!;
      loads.set(name, loads.get(name)! + 1);
    }
    assert.ok(Math.max(...loads.values()) <= Math.ceil((1.25 * 900) / 3) + 8);
  });

  test("without candidates there is no choice", () => {
    assert.equal(chooseReplica("g", []), undefined);
  });
});

describe("ReplicaDirectory", () => {
  const state = (
    replica: string,
    overrides: Partial<Pick<ReplicaState, "versions" | "inFlight" | "activity">> = {},
  ) => create(ReplicaStateSchema, { model: "m", replica, versions: [3], ...overrides });
  const names = (directory: ReplicaDirectory, lowest = 3, highest = 3) =>
    directory.serving("m", lowest, highest).map(({ name }) => name);

  test("offers the replicas of a model that have a version in the range", () => {
    const directory = new ReplicaDirectory(1_000, () => 0);
    directory.apply({ key: "m.a", value: state("a", { versions: [2, 3] }) });
    directory.apply({ key: "m.b", value: state("b", { versions: [4] }) });
    directory.apply({
      key: "other.c",
      value: create(ReplicaStateSchema, { model: "other", replica: "c", versions: [3] }),
    });
    assert.deepEqual(names(directory), ["a"]);
    assert.deepEqual(names(directory, 3, 4), ["a", "b"]);
    assert.deepEqual(names(directory, 5, 6), []);
  });

  test("drops a replica that left and one that has not reported for too long", () => {
    let now = 0;
    const directory = new ReplicaDirectory(1_000, () => now);
    directory.apply({ key: "m.a", value: state("a") });
    directory.apply({ key: "m.b", value: state("b") });
    directory.apply({ key: "m.b", value: undefined });
    assert.deepEqual(names(directory), ["a"]);
    now = 1_001;
    assert.deepEqual(names(directory), []);
  });

  test("skips a replica that did not answer for a while, or until it reports again", () => {
    let now = 0;
    const directory = new ReplicaDirectory(60_000, () => now);
    directory.apply({ key: "m.a", value: state("a") });
    directory.setAside("m", "a");
    assert.deepEqual(names(directory), []);
    directory.apply({ key: "m.a", value: state("a") });
    assert.deepEqual(names(directory), ["a"]);
    directory.setAside("m", "a");
    now = 1_001;
    assert.deepEqual(names(directory), ["a"]);
  });

  test("the load is what a replica reports or the number of open calls, whichever is more", () => {
    const directory = new ReplicaDirectory(1_000, () => 0);
    directory.apply({ key: "m.a", value: state("a", { inFlight: 2 }) });
    const close = [directory.open("m", "a"), directory.open("m", "a"), directory.open("m", "a")];
    assert.equal(directory.serving("m", 3, 3)[0]!.load, 3);
    for (const end of close) end();
    assert.equal(directory.serving("m", 3, 3)[0]!.load, 2);
  });

  test("changed() resolves with the next change", async () => {
    const directory = new ReplicaDirectory(1_000, () => 0);
    const changed = directory.changed();
    directory.apply({ key: "m.a", value: state("a") });
    await changed;
  });

  test("describe() says why no replica can serve", () => {
    const directory = new ReplicaDirectory(1_000, () => 0);
    assert.equal(directory.describe("m", 3, 3), "none is known for m");
    directory.apply({ key: "m.a", value: state("a", { versions: [2], activity: "loading version 3" }) });
    assert.equal(directory.describe("m", 3, 3), "version 3 is wanted: a has 2 and is loading version 3");
  });
});
