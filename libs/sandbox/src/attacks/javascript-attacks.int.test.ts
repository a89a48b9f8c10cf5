/**
 * Every attack against the walls that protect this machine in production: both walls, or only the first if the kernel offers none.
 * javascript-attacks.full.test.ts tries each wall alone.
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

  // First every attack must succeed without walls; otherwise a mistake in an attack would look like protection.
  for (const [what, code] of Object.entries(JAVASCRIPT_ATTACKS)) {
    test(`${what}: succeeds with every permission`, async () => {
      assert.match(await ground.runFreely(code), HAS_REACHED);
    });
  }

  for (const [what, code] of Object.entries({ ...JAVASCRIPT_ATTACKS, ...WITHOUT_CONTROL })) {
    test(`${what}: stopped by the walls of this machine`, async () => {
      assert.doesNotMatch(await ground.runBehindWalls(code, { hasKernelWalls }), HAS_REACHED);
    });
  }
});
