import assert from "node:assert/strict";
import { test } from "node:test";
import { algorithmSchema } from "@hone/rl";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack } from "../support/stack.ts";

/* Runs a step of the first example with each advantage that a run file can name: from the file to weights that moved. */

interface Case {
  readonly advantage: { readonly kind: string; readonly [option: string]: unknown };
  readonly reward?: Readonly<Record<string, unknown>>;
}

const CASES: readonly Case[] = [
  { advantage: { kind: "grpo_passk" } },
  { advantage: { kind: "gdpo" } },
  { advantage: { kind: "rloo", turnRewards: {} } },
  { advantage: { kind: "opo" }, reward: { overlong: { limit: 100, buffer: 50 } } },
  { advantage: { kind: "gpg" } },
  { advantage: { kind: "reinforce", gamma: 0.99 }, reward: { normalize: { mean: "batch" }, clip: 5 } },
  { advantage: { kind: "reinforce_plus_plus", credit: "turns", gamma: 0.99 } },
  { advantage: { kind: "reinforce_plus_plus_baseline", clip: 2 } },
  { advantage: { kind: "gigpo" } },
  { advantage: { kind: "step_reinforce" } },
  { advantage: { kind: "agentic_reinforce", credit: "turns", gamma: 0.9, whiten: true } },
];
const RUN = { steps: 1, tasksPerStep: 8, minibatches: 1, warmStartTasks: 100, evalTasks: 1 };
const DEADLINE_MS = 300_000;

test("each advantage trains a step from its run file", async (context) => {
  await using stack = await startStack();
  for (const given of CASES) {
    const { kind } = given.advantage;
    await context.test(kind, async () => {
      const run = await lakeRun({ ...RUN, name: `lake-${kind.replaceAll("_", "-")}` });
      const algorithm = algorithmSchema.parse(given);
      const { runId } = await runToEnd(stack, { ...run, algorithm }, { deadlineMs: DEADLINE_MS });
      const [before, after] = await stack.sql<
        { state_digest: string; metrics: { loss: number; "groups/used": number } }[]
      >`select state_digest, metrics from trainer.steps where run_id = ${runId} order by version`;
      assert.notEqual(after!.state_digest, before!.state_digest);
      assert.ok(after!.metrics["groups/used"] > 0, `groups used: ${after!.metrics["groups/used"]}`);
      assert.ok(Number.isFinite(after!.metrics.loss));
    });
  }
});
