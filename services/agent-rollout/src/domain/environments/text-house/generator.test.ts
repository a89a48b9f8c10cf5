import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import path from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { Random } from "@hone/core";
import { doorOf, drawFloorPlan } from "./floor-plan.ts";
import { drawStart, type HouseOptions } from "./generator.ts";
import { KEY, ROOM_KINDS, type RoomName } from "./lexicon.ts";
import { candidatesOf, isSolved, TASK_KINDS, TaskKind } from "./tasks.ts";
import { DIFFICULTIES, houseConfig } from "./testing.ts";
import { TextHouse } from "./text-house.ts";

const options = (changes: Partial<HouseOptions> = {}): HouseOptions => ({
  rooms: 6,
  objects: 15,
  lockedDoors: 2,
  tasks: TASK_KINDS,
  minSolutionSteps: 1,
  maxSteps: 100,
  ...changes,
});

/** The first observations of a hundred seeds at each difficulty. Another digest means other episodes for all runs. */
const FIRST_OBSERVATIONS = "e6807ae78b7e93483ce4d7eabc568722fd0c5a689779775c0ea5c0e15885548c";

function digestOfFirstObservations(): string {
  const digest = createHash("sha256");
  for (const config of Object.values(DIFFICULTIES)) {
    const house = new TextHouse(houseConfig(config));
    for (let seed = 0; seed < 100; seed++) digest.update(house.reset(seed).observation);
  }
  return digest.digest("hex");
}

describe("drawStart()", () => {
  test("a seed always gives the same house, in every process", async () => {
    assert.equal(digestOfFirstObservations(), FIRST_OBSERVATIONS);
    const code = `
      const { TextHouse, textHouseConfigSchema } = await import(${JSON.stringify(path.join(import.meta.dirname, "text-house.ts"))});
      const house = new TextHouse(textHouseConfigSchema.parse({}));
      console.log([3, 2, 1].map((seed) => house.reset(seed).observation).join("\\n"));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code]);
    const here = new TextHouse(houseConfig());
    assert.equal(stdout.trimEnd(), [3, 2, 1].map((seed) => here.reset(seed).observation).join("\n"));
  });

  test("different seeds give different houses", () => {
    const house = new TextHouse(houseConfig());
    const all = new Set(Array.from({ length: 500 }, (_, seed) => house.reset(seed).observation));
    assert.ok(all.size > 490, `${all.size}`);
  });

  test("has as many rooms, objects and locked doors as asked, with a key for each lock", () => {
    for (let seed = 0; seed < 200; seed++) {
      const { house } = drawStart(seed, options());
      assert.equal(house.rooms.size, 6);
      const things = [...house.things.values()];
      assert.equal(things.filter(({ kind }) => kind !== KEY).length, 15);
      const keys = [...house.doors.values()].flatMap(({ key }) => key ?? []);
      assert.equal(keys.length, 2);
      assert.equal(new Set(keys).size, 2);
      for (const key of keys) assert.ok(house.things.has(key));
      assert.ok(house.rooms.has("kitchen"));
      assert.ok(house.lamps.size > 0);
    }
  });

  test("all names of a house are different, and things lie in its places", () => {
    for (let seed = 0; seed < 100; seed++) {
      const { house, state } = drawStart(seed, options({ rooms: 12, objects: 60, lockedDoors: 4 }));
      const names = [house.rooms, house.places, house.doors, house.things, house.lamps].flatMap((map) => [
        ...(map as ReadonlyMap<string, unknown>).keys(),
      ]);
      assert.equal(new Set(names).size, names.length);
      for (const where of state.whereabouts.values()) assert.ok(house.places.has(where), where);
    }
  });

  test("no task is solved at first, and nothing of its kind lies where the task wants it", () => {
    for (let seed = 0; seed < 300; seed++) {
      const { house, state, task } = drawStart(seed, options({ objects: 3 }));
      assert.equal(isSolved(house, task, state), false);
      if (!("target" in task) || task.object === KEY) continue;
      for (const { name } of candidatesOf(house, task)) {
        assert.notEqual(house.places.get(state.whereabouts.get(name)!)!.kind, task.target);
      }
    }
  });

  test("all kinds of tasks that are asked for are about equally likely", () => {
    const counts = new Map<TaskKind, number>();
    for (let seed = 0; seed < 1_400; seed++) {
      const { kind } = drawStart(seed, options({ rooms: 3, lockedDoors: 1 })).task;
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    for (const kind of TASK_KINDS)
      assert.ok(Math.abs(counts.get(kind)! - 200) < 60, `${kind}: ${counts.get(kind)}`);
  });

  test("every task takes as many steps as asked, and no more than the episode has", () => {
    for (let seed = 0; seed < 100; seed++) {
      const { length } = drawStart(seed, options({ minSolutionSteps: 10, maxSteps: 14 })).solution;
      assert.ok(length >= 10 && length <= 14, `${length}`);
    }
  });

  test("a length that no task has is refused with the place of the option", () => {
    assert.throws(() => drawStart(1, options({ tasks: [TaskKind.putTwo], maxSteps: 4 })), {
      path: "maxSteps",
      message:
        /1000 houses were drawn for the seed 1, and none had a task that takes from .* to maxSteps: 4 steps/,
    });
    assert.throws(() => drawStart(1, options({ rooms: 2, lockedDoors: 0, minSolutionSteps: 60 })), {
      path: "minSolutionSteps",
    });
  });
});

describe("drawFloorPlan()", () => {
  const rooms = Object.keys(ROOM_KINDS) as RoomName[];

  /** The rooms that can be reached without passing these doors. */
  function reached(seed: number, isPassable: (door: string) => boolean): ReadonlySet<RoomName> {
    const { exits } = drawFloorPlan(new Random(seed), rooms, 4);
    const seen = new Set([rooms[0]!]);
    for (const room of seen) {
      for (const { to, door } of exits.get(room)!) if (door === undefined || isPassable(door)) seen.add(to);
    }
    return seen;
  }

  test("every room can be reached, and ways lead back where they came from", () => {
    for (let seed = 0; seed < 300; seed++) {
      assert.equal(reached(seed, () => true).size, rooms.length);
      const { exits } = drawFloorPlan(new Random(seed), rooms, 4);
      for (const [room, ways] of exits) {
        assert.equal(new Set(ways.map(({ direction }) => direction)).size, ways.length);
        for (const { to, door } of ways) {
          const back = exits.get(to)!.filter((way) => way.to === room);
          assert.deepEqual(
            back.map((way) => way.door),
            [door],
          );
        }
      }
    }
  });

  test("no way leads round a locked door, and those before it suffice to get to it", () => {
    for (let seed = 0; seed < 300; seed++) {
      const { lockedRooms, locksBefore } = drawFloorPlan(new Random(seed), rooms, 4);
      assert.equal(lockedRooms.length, 4);
      for (const [index, room] of lockedRooms.entries()) {
        const door = doorOf(room);
        assert.ok(!reached(seed, (each) => each !== door).has(room));
        const before = new Set(lockedRooms.slice(0, index + 1).map(doorOf));
        const locked = new Set(lockedRooms.map(doorOf));
        assert.ok(reached(seed, (each) => !locked.has(each) || before.has(each)).has(room));
      }
      for (const room of rooms) {
        const passable = new Set(locksBefore.get(room)!.map(doorOf));
        const locked = new Set(lockedRooms.map(doorOf));
        assert.ok(reached(seed, (each) => !locked.has(each) || passable.has(each)).has(room));
      }
    }
  });

  test("some houses have ways round", () => {
    const numWays = Array.from({ length: 100 }, (_, seed) =>
      [...drawFloorPlan(new Random(seed), rooms, 1).exits.values()].reduce(
        (sum, ways) => sum + ways.length,
        0,
      ),
    );
    assert.ok(numWays.some((count) => count > 2 * (rooms.length - 1)));
    assert.ok(numWays.some((count) => count === 2 * (rooms.length - 1)));
  });
});
