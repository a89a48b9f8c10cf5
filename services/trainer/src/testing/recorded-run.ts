/** A run in memory that kept its rollouts, and replays of it. For tests of the domain only. */

import assert from "node:assert/strict";
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { RunConfig } from "@hone/config";
import { testRun } from "./fake-run.ts";
import { Death, tenure } from "./memory-tenure.ts";
import { MemoryWorld } from "./memory-world.ts";

export const RECORDED = "recorded-1";

/** Plays a run to its end, and calls it `recorded-1` afterwards. */
export async function record(root: string, config: RunConfig): Promise<MemoryWorld> {
  const world = new MemoryWorld(testRun({ config }));
  await tenure(world, root);
  assert.equal(world.ending, "completed");
  const [from, to] = ["test-1", RECORDED].map((run) => path.join(root, "runs", run)) as [string, string];
  await rename(from, to);
  await mkdir(from);
  await rename(path.join(to, "tokenizer"), path.join(from, "tokenizer"));
  return world;
}

/** A run that trains what `recorded-1` kept. @param from its first step; absent = all steps, from version 0. */
export function replayOf(config: RunConfig, from?: number): MemoryWorld {
  const { warmStart: _, ...rest } = config;
  const replay = {
    ...(from === undefined ? config : rest),
    trainer: { ...config.trainer, keepRollouts: false, keepStates: 0 },
    replay: { run: RECORDED, ...(from !== undefined && { from }) },
  };
  return new MemoryWorld(testRun({ config: replay }));
}

/**
 * Trains a run once for each of its effects, dying there and going on afterwards.
 * @returns the number of effects, and the worlds by the effect at which the process died.
 */
export async function dieAnywhere(
  newWorld: () => MemoryWorld,
  root: string,
): Promise<Map<string, MemoryWorld>> {
  const calm = newWorld();
  const points: string[] = [];
  calm.point = (point) => void points.push(point);
  await tenure(calm, root);
  const worlds = new Map<string, MemoryWorld>();
  for (const [deadly, name] of points.entries()) {
    await rm(path.join(root, "runs", "test-1", "state"), { recursive: true });
    const world = newWorld();
    let count = 0;
    world.point = (reached) => {
      if (count++ === deadly) throw new Death(reached);
    };
    await tenure(world, root).catch((error: unknown) => assert.ok(error instanceof Death, String(error)));
    if (world.ending === undefined) await tenure(world, root);
    assert.equal(world.ending, "completed");
    worlds.set(`death at effect ${deadly}, ${name}`, world);
  }
  return worlds;
}
