import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Rollouts of a short run are shown frame by frame: the page's API and `hone render` ask agent-rollout, which plays them again. */

const RUN = { name: "shown", steps: 1, tasksPerStep: 2, minibatches: 1, warmStartTasks: 16, evalTasks: 2 };

interface Listed {
  readonly slot: string;
  readonly turns: number;
}

describe("hone render", { timeout: 180_000 }, () => {
  let stack: TestStack;
  let runId: string;
  let rollouts: readonly Listed[];

  before(async () => {
    stack = await startStack({ isInProcess: true });
    await runToEnd(stack, await lakeRun(RUN), { deadlineMs: 100_000 });
    runId = `${RUN.name}-1`;
    rollouts = await eventually("the tracer to have stored the rollouts", async () => {
      const answer = await stack.page(`/api/runs/${runId}/rollouts?limit=200`);
      const { rollouts: stored } = (await answer.json()) as { rollouts: Listed[] };
      return stored.length >= 16 + 2 * 8 ? stored : undefined;
    });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("every stored rollout comes to its recorded states again, and is drawn", async () => {
    for (const { slot, turns } of rollouts) {
      const answer = await stack.page(`/api/runs/${runId}/rollouts/${slot}/frames`);
      const shown = (await answer.json()) as { source: string; notice: string; frames: { svg?: string }[] };
      assert.deepEqual([shown.source, shown.notice], ["environment", ""], slot);
      assert.equal(shown.frames.length, turns + 1, slot);
      assert.ok(shown.frames.every(({ svg }) => svg?.startsWith("<svg") === true));
    }
  });

  test("writes an animation, pictures and texts, and says what it cannot show", async () => {
    const { slot, turns } =
      rollouts.find((each) => each.slot.startsWith("train.")) ?? assert.fail("no rollout");
    const place = (name: string) => path.join(stack.stateFolder, name);
    const gif = await stack.hone("render", runId, slot, "-o", place("lake.gif"), "--scale", "1.5");
    assert.equal(gif.code, 0, gif.output);
    assert.match(
      gif.output,
      new RegExp(`^${slot} of ${runId} is in .*lake\\.gif: ${turns + 1} frames of 312 x `, "m"),
    );
    assert.equal((await readFile(place("lake.gif"))).toString("latin1", 0, 6), "GIF89a");
    const pictures = await stack.hone("render", runId, slot, "-o", place("frames"), "--no-caption");
    assert.equal(pictures.code, 0, pictures.output);
    assert.equal((await readdir(place("frames"))).length, turns + 1);
    const texts = await stack.hone("render", runId, slot, "-o", place("lake.txt"));
    assert.equal(texts.code, 0, texts.output);
    assert.match(await readFile(place("lake.txt"), "utf8"), /^== start\n[P_OG\n]{19}\n\n== turn 1: /);

    const unknown = await stack.hone("render", runId, "train.99.0.0", "-o", place("none.gif"));
    assert.equal(unknown.code, 1);
    assert.match(unknown.output, /rollout shown-1\/train\.99\.0\.0 cannot be shown: nothing is stored/);
    const large = await stack.hone("render", runId, slot, "-o", place("none.gif"), "--scale", "0");
    assert.match(large.output, /--scale 0 is not allowed; it must be a number from 0\.1 to 16/);
  });
});
