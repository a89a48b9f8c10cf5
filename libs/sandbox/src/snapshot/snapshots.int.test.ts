import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { findDeno, spawnDeno } from "../deno-process.ts";
import { PythonSandbox } from "../python-sandbox.ts";
import { told } from "../testing/attack-ground.ts";
import { kernelWalls } from "../walls/kernel-walls.ts";
import { ClosedFolder } from "./closed-folder.ts";
import { encodeSnapshot, snapshotKey } from "./snapshot-file.ts";
import { Snapshots } from "./snapshots.ts";

const BOUND = 1 << 28;
const LIMITS = { timeMs: 60_000, maxOutputBytes: 100 };
const never = new AbortController().signal;
const refuseToMake = async () => assert.fail("a snapshot was made");

/** What a child of the sandbox might do to the folder if it ran its own JavaScript; each attack works after the ones before it. */
const ATTACKS = [
  `Deno.readFileSync(FILE).length > 0`,
  `[...Deno.readDirSync(FOLDER)].length > 0`,
  `Deno.openSync(FILE, { write: true }) !== undefined`,
  `Deno.chmodSync(FILE, 0o666) === undefined`,
  `Deno.utimeSync(FILE, 0, 0) === undefined`,
  `Deno.linkSync(FILE, FOLDER + "/second") === undefined`,
  `Deno.symlinkSync("/etc/passwd", FOLDER + "/link") === undefined`,
  `Deno.writeTextFileSync(FOLDER + "/other", "planted") === undefined`,
  `Deno.truncateSync(FILE, 0) === undefined`,
  `Deno.writeTextFileSync(FILE, "planted") === undefined`,
  `Deno.renameSync(FOLDER, FOLDER + ".away") === undefined`,
  `Deno.mkdirSync(FOLDER) === undefined`,
  `Deno.removeSync(FOLDER) === undefined`,
];
const REACHED = /^REACHED$/m;
/** The number of walls of a kernel that has both Landlock and seccomp; others have fewer. */
const NUM_WALLS = 3;

describe("the snapshot of a started Python on disk", { timeout: 300_000 }, () => {
  let around: TemporaryFolder;
  let folder: string;
  let file: string;
  before(async () => {
    around = await temporaryFolder("snapshots");
    folder = path.join(around.path, "cache");
    file = path.join(folder, `python-${await snapshotKey(BOUND)}.snapshot`);
  });
  after(() => around[Symbol.asyncDispose]());

  const runs = async (snapshots: Snapshots) => {
    const sandbox = new PythonSandbox({ maxProcesses: 1, maxMemoryBytes: BOUND, snapshots });
    try {
      const result = await sandbox.run("6 * 7", LIMITS, never);
      assert.ok(result.kind === "finished" && result.value === "42", JSON.stringify(result));
    } finally {
      await sandbox.close();
    }
  };

  test("a snapshot from which Python does not start is made again, and the next process uses the new one", async () => {
    const bad = Buffer.alloc(1_000, "no memory of a Python");
    {
      await using closed = await ClosedFolder.open(folder);
      await closed.write(path.basename(file), encodeSnapshot(await snapshotKey(BOUND), bad));
    }
    await runs(new Snapshots({ folder }));
    assert.ok((await stat(file)).size > 10_000_000);
    await runs(new Snapshots({ folder, make: refuseToMake }));
  });

  test("all sandboxes of a process share one snapshot, also when no folder can be used", async () => {
    let numStarted = 0;
    const onStart = () => numStarted++;
    await kernelWalls();
    const variable = process.env.HONE_CACHE_DIR;
    process.env.HONE_CACHE_DIR = "/dev/null/none";
    subscribe("child_process", onStart);
    const sandboxes = Array.from({ length: 2 }, () => new PythonSandbox({ maxProcesses: 1 }));
    try {
      // Sessions keep their processes, so no further process is started in advance.
      await Promise.all(sandboxes.map((sandbox) => sandbox.open().run("1", LIMITS, never)));
      assert.equal(numStarted, 3);
    } finally {
      unsubscribe("child_process", onStart);
      if (variable === undefined) delete process.env.HONE_CACHE_DIR;
      else process.env.HONE_CACHE_DIR = variable;
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    }
  });

  test("a child of the sandbox can neither read nor write the snapshot behind either wall alone", async () => {
    const { names } = await kernelWalls();
    const attack = (place: string) =>
      [
        `const FOLDER = ${JSON.stringify(place)}, FILE = ${JSON.stringify(path.join(place, path.basename(file)))};`,
        ...ATTACKS.map(
          (each) =>
            `try { if (${each}) console.log("REACHED"); } catch (error) { console.log(${JSON.stringify(each)} + error); }`,
        ),
        `console.log("end");`,
      ].join("\n");
    const bytes = await readFile(file);
    for (const walls of [
      { hasKernelWalls: false },
      ...(names.length >= NUM_WALLS ? [{ hasKernelWalls: true, permissions: ["--allow-all"] }] : []),
    ]) {
      const said = await told(spawnDeno({ program: attack(folder), maxPythonBytes: BOUND, ...walls }));
      assert.match(said, /^end$/m);
      assert.doesNotMatch(said, REACHED, said);
    }
    assert.deepEqual(await readdir(folder), [path.basename(file)]);
    assert.ok(bytes.equals(await readFile(file)));
    // Without any wall all attacks succeed; otherwise a mistake in an attack would look like protection.
    const copy = path.join(around.path, "copy");
    {
      await using closed = await ClosedFolder.open(copy);
      await closed.write(path.basename(file), [bytes]);
    }
    const free = spawn(findDeno(), ["run", "--allow-all", "--no-config", "--no-lock", "--quiet", "-"], {
      env: { DENO_DIR: path.join(around.path, "deno") },
    });
    free.stdin.end(attack(copy));
    const said = await told(free);
    assert.equal(said.split("\n").filter((line) => REACHED.test(line)).length, ATTACKS.length, said);
  });
});
