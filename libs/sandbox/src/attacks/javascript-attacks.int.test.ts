/**
 * Every attack against the walls that stand in production on this machine: both, or the first alone where the kernel has none. Each
 * wall alone, as if the other were not there, is tried in javascript-attacks.full.test.ts.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { AttackGround, HAS_REACHED } from "../testing/attack-ground.ts";
import { JAVASCRIPT_ATTACKS, WITHOUT_CONTROL } from "../testing/javascript-attacks.ts";
import { kernelWalls } from "../walls/kernel-walls.ts";

describe("arbitrary JavaScript in the process of the sandbox", { timeout: 300_000 }, () => {
  let ground: AttackGround;
  let hasKernelWalls: boolean;
  before(async () => {
    ground = await AttackGround.open();
    hasKernelWalls = (await kernelWalls()).names.length > 0;
  });
  after(() => ground.close());

  // Else an attack that is written wrongly would be held by its own mistake.
  for (const [what, code] of Object.entries(JAVASCRIPT_ATTACKS)) {
    test(`${what}: reached with every permission`, async () => {
      assert.match(await ground.runFreely(code), HAS_REACHED);
    });
  }

  for (const [what, code] of Object.entries({ ...JAVASCRIPT_ATTACKS, ...WITHOUT_CONTROL })) {
    test(`${what}: held by the walls of this machine`, async () => {
      assert.doesNotMatch(await ground.runBehindWalls(code, { hasKernelWalls }), HAS_REACHED);
    });
  }
});
