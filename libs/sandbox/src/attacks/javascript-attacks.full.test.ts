/**
 * Every attack against each wall alone. Behind the second wall the runtime has every permission, as if an attacker ran machine code
 * in it. If the kernel offers no walls, the first wall is alone in production too, and javascript-attacks.int.test.ts has tried it
 * already.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { AttackGround, HAS_REACHED } from "../testing/attack-ground.ts";
import { JAVASCRIPT_ATTACKS, WITHOUT_CONTROL } from "../testing/javascript-attacks.ts";
import { kernelWalls } from "../walls/kernel-walls.ts";

/** These attacks fail without a reason in their output; that they reached nobody is checked at the port. */
const FAILS_WITHOUT_REASON = new Set([
  "asks a name server",
  "imports from the network",
  "opens a web socket",
]);
/** These attacks reach nothing outside the process, or only the names and sizes of files. */
const NOT_OF_THE_KERNEL = new Set([
  "asks whether a file is there",
  "changes its folder",
  "talks to its own inspector",
  "asks for the host's name",
  "opens a library",
  "opens a library by process",
  "makes a pointer",
  "loads an extension of SQLite",
  "asks for permissions",
  "makes code of text",
]);
/** The number of walls of a kernel that has both Landlock and seccomp; others have fewer. */
const NUM_WALLS = 3;

describe("arbitrary JavaScript behind one wall alone", { timeout: 600_000 }, () => {
  let ground: AttackGround;
  before(async () => {
    ground = await AttackGround.open();
  });
  after(() => ground.close());

  for (const [what, code] of Object.entries({ ...JAVASCRIPT_ATTACKS, ...WITHOUT_CONTROL })) {
    test(`${what}: stopped by the runtime alone`, async (t) => {
      const { names } = await kernelWalls();
      if (names.length === 0) return t.skip("this kernel has no walls: the runtime alone is tried already");
      assert.doesNotMatch(await ground.runBehindWalls(code, { hasKernelWalls: false }), HAS_REACHED);
    });
  }

  for (const [what, code] of Object.entries(JAVASCRIPT_ATTACKS)) {
    if (NOT_OF_THE_KERNEL.has(what)) continue;
    test(`${what}: stopped by the kernel alone`, async (t) => {
      const { names } = await kernelWalls();
      if (names.length < NUM_WALLS) return t.skip(`this kernel has only: ${names.join(", ")}`);
      const said = await ground.runBehindWalls(code, {
        hasKernelWalls: true,
        permissions: ["--allow-all"],
      });
      if (!FAILS_WITHOUT_REASON.has(what)) assert.doesNotMatch(said, HAS_REACHED);
    });
  }
});
