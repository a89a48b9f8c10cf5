/** For tests of rollouts with the tokenizer of the first example, in which a character is one or two tokens. */

import path from "node:path";
import type { Policy } from "@hone/agents";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import type { RolloutJob, RolloutRecord } from "../rollout-job.ts";
import { jobOf, type RunJobOptions, runJob, WritingPolicy } from "./row-rollouts.ts";

const example = path.join(import.meta.dirname, "../../../../../examples/01-frozen-lake");

export const lakeTokenizer = await loadTokenizer(example);
const renderer = new ChatRenderer(lakeTokenizer);

/** The shortest prompts for the agent frozen_lake. */
export const LEAN_LAKE = {
  systemPrompt: "",
  instruction: "",
  promptTemplate: "{observation}\n{player_row}{player_column}",
};

/** A job for a rollout in a frozen lake. */
export function lakeJob(changes: Partial<RolloutJob> = {}): RolloutJob {
  return jobOf({
    slot: { split: "train", step: 2, task: 3, index: 1 },
    task: { id: "lake:5", environment: { name: "frozen_lake", seed: 5, configJson: "{}" }, row: undefined },
    agentName: "frozen_lake",
    agentConfigJson: JSON.stringify({ ...LEAN_LAKE, historyTurns: 0 }),
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 8 },
    limits: { maxTurns: 10, maxContextTokens: 512, deadlineMs: 10_000, maxAttempts: 3 },
    lowestVersion: 4,
    highestVersion: 4,
    ...changes,
  });
}

/** A job for a rollout of a row with the agent single_turn. */
export function rowOfLakeJob(
  row: Readonly<Record<string, unknown>>,
  changes: Partial<RolloutJob> = {},
): RolloutJob {
  return lakeJob({
    agentName: "single_turn",
    agentConfigJson: undefined,
    task: { id: "rows.jsonl:1", environment: undefined, row },
    ...changes,
  });
}

/** A policy that answers with the texts in their order, and then always with the last one. */
export function writes(...texts: readonly string[]): WritingPolicy {
  return new WritingPolicy(renderer, ...texts);
}

/** {@link runJob} with the lake's tokenizer. */
export function play(job: RolloutJob, policy: Policy, options: RunJobOptions = {}): Promise<RolloutRecord> {
  return runJob(job, renderer, policy, options);
}
