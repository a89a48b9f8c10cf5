import assert from "node:assert/strict";
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { WheelSet } from "../packages/wheel-set.ts";
import { snapshotKey } from "./snapshot-file.ts";
import { Snapshots } from "./snapshots.ts";

const BOUND = 1 << 28;
const isRoot = process.geteuid?.() === 0;

/** Makes snapshots that contain their number. */
class Maker {
  numMade = 0;
  readonly make = async (): Promise<Uint8Array> =>
    Buffer.from(`snapshot ${++this.numMade} ${"x".repeat(1_000)}`);
}

/** Calls `work` with a function that creates the snapshots of another process with the same folder. */
async function inFolder(
  work: (given: { start: () => Snapshots; maker: Maker; folder: string; file: string }) => Promise<void>,
): Promise<void> {
  await using around = await temporaryFolder("snapshots");
  const folder = path.join(around.path, "cache");
  const maker = new Maker();
  const start = () => new Snapshots({ folder, make: maker.make });
  await work({
    start,
    maker,
    folder,
    file: path.join(folder, `python-${await snapshotKey(BOUND)}.snapshot`),
  });
}

const said = async (snapshots: Snapshots, bound = BOUND) => `${await snapshots.take(bound)}`.slice(0, 10);

describe("Snapshots", () => {
  test("makes one snapshot for each memory limit, for all concurrent and later calls", () =>
    inFolder(async ({ start, maker }) => {
      const snapshots = start();
      const [first, again, larger] = await Promise.all([
        said(snapshots),
        said(snapshots),
        said(snapshots, BOUND * 2),
      ]);
      // Either limit may be the first to be made.
      assert.deepEqual([first, larger].toSorted(), ["snapshot 1", "snapshot 2"]);
      assert.equal(again, first);
      assert.equal(await said(snapshots), first);
      assert.equal(maker.numMade, 2);
    }));

  test("the next process finds the snapshot on disk, closed to other accounts", () =>
    inFolder(async ({ start, maker, folder, file }) => {
      assert.equal(await said(start()), "snapshot 1");
      assert.equal(await said(start()), "snapshot 1");
      assert.equal(maker.numMade, 1);
      assert.deepEqual(
        [(await stat(folder)).mode & 0o7777, (await stat(file)).mode & 0o7777],
        [0o700, 0o600],
      );
    }));

  test("concurrent makers leave one whole file", () =>
    inFolder(async ({ start, maker, folder, file }) => {
      await Promise.all(Array.from({ length: 5 }, () => said(start())));
      assert.deepEqual(await readdir(folder), [path.basename(file)]);
      const before = maker.numMade;
      assert.match(await said(start()), /^snapshot [1-5]$/);
      assert.equal(maker.numMade, before);
    }));

  for (const [what, spoil] of Object.entries({
    "a link to a good snapshot": async (file: string) => {
      const beside = `${file}.beside`;
      await writeFile(beside, await readFile(file), { mode: 0o600 });
      await rm(file);
      await symlink(beside, file);
    },
    "writable by others": (file: string) => chmod(file, 0o666),
    truncated: (file: string) => truncate(file, 500),
    "truncated to a few bytes": (file: string) => truncate(file, 10),
    "changed in one byte": async (file: string) => {
      const bytes = await readFile(file);
      bytes[bytes.length - 1] = 0;
      await writeFile(file, bytes);
    },
    "made from something else": async (file: string) => {
      const bytes = await readFile(file);
      bytes[30] = (bytes[30] ?? 0) ^ 1;
      await writeFile(file, bytes);
    },
    "followed by more bytes": async (file: string) => writeFile(file, "more", { flag: "a" }),
    ...(isRoot ? { "owned by another account": (file: string) => chown(file, 65_534, 65_534) } : {}),
  })) {
    test(`replaces a snapshot that is ${what}`, () =>
      inFolder(async ({ start, file }) => {
        await said(start());
        await spoil(file);
        assert.equal(await said(start()), "snapshot 2");
        assert.equal(await said(start()), "snapshot 2");
        assert.equal((await stat(file)).mode & 0o7777, 0o600);
      }));
  }

  test("a snapshot from which a start failed is made again, only once however often it is reported", () =>
    inFolder(async ({ start, maker }) => {
      const snapshots = start();
      const bad = await snapshots.take(BOUND);
      await Promise.all([snapshots.drop(BOUND, bad), snapshots.drop(BOUND, bad)]);
      assert.equal(await said(snapshots), "snapshot 2");
      await snapshots.drop(BOUND, bad);
      assert.equal(await said(snapshots), "snapshot 2");
      assert.equal(await said(start()), "snapshot 2");
      assert.equal(maker.numMade, 2);
    }));

  test("tries again after a snapshot could not be made", () =>
    inFolder(async ({ maker, folder }) => {
      let isBroken = true;
      const make = async () => (isBroken ? Promise.reject(new Error("no memory")) : maker.make());
      const snapshots = new Snapshots({ folder, make });
      await assert.rejects(snapshots.take(BOUND), /no memory/);
      isBroken = false;
      assert.equal(await said(snapshots), "snapshot 1");
    }));

  test("works in memory when no folder can be used, and reports why", async () => {
    await using around = await temporaryFolder("snapshots");
    const file = path.join(around.path, "file");
    await writeFile(file, "");
    for (const folder of [path.join(file, "below"), file, undefined]) {
      const maker = new Maker();
      const snapshots = new Snapshots({ folder, make: maker.make });
      assert.deepEqual([await said(snapshots), await said(snapshots)], ["snapshot 1", "snapshot 1"]);
      assert.match((await snapshots.problem()) ?? "", /ENOTDIR|EEXIST|no folder/);
      assert.equal(maker.numMade, 1);
    }
  });

  test(
    "works in memory where the folder belongs to another account",
    {
      skip: isRoot ? false : "only root can create one",
    },
    () =>
      inFolder(async ({ start, folder }) => {
        await mkdir(folder, { mode: 0o777 });
        await chown(folder, 65_534, 65_534);
        assert.equal(await said(start()), "snapshot 1");
        assert.deepEqual(await readdir(folder), []);
        assert.match((await start().problem()) ?? "", /belongs to account 65534/);
      }),
  );

  test("removes the oldest snapshots that were made from something else", () =>
    inFolder(async ({ start, folder, file }) => {
      const snapshots = start();
      await said(snapshots, 1);
      for (let i = 0; i < 8; i++) {
        const other = path.join(folder, `python-${i}.snapshot`);
        await writeFile(other, "old", { mode: 0o600 });
        const at = new Date(Date.UTC(2020, i));
        await utimes(other, at, at);
      }
      await said(snapshots);
      const left = await readdir(folder);
      assert.equal(left.length, 6);
      for (const name of [path.basename(file), "python-7.snapshot", "python-4.snapshot"]) {
        assert.ok(left.includes(name), name);
      }
    }));
});

describe("snapshotKey", () => {
  test("is another one for other packages", async () => {
    const wheel = { name: "a", version: "1", bytes: new Uint8Array(1), isCompiled: false, modules: [] };
    const setOf = (sha256: string) => new WheelSet([{ ...wheel, fileName: "a-1-py3-none-any.whl", sha256 }]);
    const keys = [WheelSet.none, setOf("1"), setOf("2")].map((wheels) => snapshotKey(1, wheels));
    assert.equal(new Set(await Promise.all(keys)).size, 3);
    assert.equal(await keys[1], await snapshotKey(1, setOf("1")));
  });

  test("is the same for the same memory limit, and differs for another one", async () => {
    assert.match(await snapshotKey(1), /^[0-9a-f]{64}$/);
    assert.equal(await snapshotKey(1), await snapshotKey(1));
    assert.notEqual(await snapshotKey(1), await snapshotKey(2));
  });
});
