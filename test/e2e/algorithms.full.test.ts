import assert from "node:assert/strict";
import { test } from "node:test";
import { algorithmSchema, valueLossSchema } from "@hone/rl";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack } from "../support/stack.ts";

/* Runs a step on the lake with each advantage and each loss that a run file can name: from the file to weights that moved. */

interface Chosen {
  readonly kind: string;
  readonly [option: string]: unknown;
}

interface Case {
  readonly advantage?: Chosen;
  readonly loss?: Chosen;
  readonly reward?: Readonly<Record<string, unknown>>;
  readonly kl?: Readonly<Record<string, unknown>>;
  readonly correction?: Readonly<Record<string, unknown>>;
  readonly dynamicSampling?: Readonly<Record<string, unknown>>;
  readonly hasCritic?: boolean;
}

const ADVANTAGES: readonly Case[] = [
  { advantage: { kind: "grpo_passk" } },
  { advantage: { kind: "gdpo" } },
  { advantage: { kind: "rloo", turnRewards: {} } },
  { advantage: { kind: "opo" }, reward: { overlong: { limit: 100, buffer: 50 } } },
  { advantage: { kind: "gpg" } },
  { advantage: { kind: "reinforce", gamma: 0.99 }, reward: { normalize: { mean: "batch" }, clip: 5 } },
  { advantage: { kind: "reinforce_plus_plus", credit: "turns", gamma: 0.99 } },
  { advantage: { kind: "reinforce_plus_plus_baseline", clip: 2 } },
  { advantage: { kind: "remax" } },
  { advantage: { kind: "gae", lambda: 0.9 }, hasCritic: true },
  { advantage: { kind: "optimal_token_baseline" } },
  { advantage: { kind: "tir_optimal_token_baseline" } },
  { advantage: { kind: "gigpo" } },
  { advantage: { kind: "step_reinforce" } },
  { advantage: { kind: "agentic_reinforce", credit: "turns", gamma: 0.9, whiten: true } },
];
const LOSSES: readonly Case[] = [
  { loss: { kind: "ppo_clip", ratio: "segment" }, kl: { coefficient: 0.01, kind: "k3+" } },
  { loss: { kind: "gspo" } },
  { loss: { kind: "gmpo" } },
  { loss: { kind: "sapo" } },
  { loss: { kind: "cispo", mask: true } },
  { loss: { kind: "dppo_tv" } },
  { loss: { kind: "dppo_kl" } },
  { loss: { kind: "dro" } },
  { loss: { kind: "gpg" }, advantage: { kind: "gpg" } },
  { loss: { kind: "clip_cov", share: 0.1, covarianceLow: 0 } },
  { loss: { kind: "kl_cov", share: 0.1 } },
  { loss: { kind: "topr" } },
  { loss: { kind: "tis", upper: 2 } },
  { loss: { kind: "kimi15" } },
  { loss: { kind: "reinforce" } },
];
const CORRECTIONS: readonly Case[] = [
  {
    correction: {
      weight: { normalize: true },
      reject: [{ measure: "k3", level: "sequence_mean", upper: 0.1 }],
    },
  },
  { correction: { old: "rollout", veto: 1e-4 }, loss: { kind: "gspo" } },
];
const REWARDS: readonly Case[] = [
  {
    reward: { kl: { coefficient: 0.01, adaptive: { target: 0.1 } } },
    advantage: { kind: "reinforce_plus_plus" },
  },
  { reward: { kl: { coefficient: 0.01, kind: "k3" } }, kl: { coefficient: 0.01 } },
];
const SAMPLING: readonly Case[] = [
  { dynamicSampling: { maxBatches: 3 } },
  { dynamicSampling: { metric: "success", maxBatches: 2 }, advantage: { kind: "remax" } },
];
const RUN = { steps: 1, tasksPerStep: 8, minibatches: 1, warmStartTasks: 100, evalTasks: 1 };
const CRITIC = { loss: valueLossSchema.parse({}), warmupSteps: 0 };
const DEADLINE_MS = 300_000;

test("each advantage, loss, correction, shape of rewards and kind of sampling trains a step from its run file", async (context) => {
  await using stack = await startStack();
  const named = (cases: readonly Case[], part: "advantage" | "loss") =>
    cases.map((given) => ({ given, name: `${given[part]!.kind.replaceAll("_", "-")}-${part}` }));
  const numbered = (cases: readonly Case[], part: string) =>
    cases.map((given, i) => ({ given, name: `${part}-${i + 1}` }));
  for (const { given, name } of [
    ...named(ADVANTAGES, "advantage"),
    ...named(LOSSES, "loss"),
    ...numbered(CORRECTIONS, "correction"),
    ...numbered(REWARDS, "reward"),
    ...numbered(SAMPLING, "sampling"),
  ]) {
    await context.test(name, async () => {
      const { hasCritic, ...parts } = given;
      const run = await lakeRun({ ...RUN, name, ...(hasCritic && { critic: CRITIC }) });
      const algorithm = algorithmSchema.parse(parts);
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
