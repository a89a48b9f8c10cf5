import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome, TerminalError } from "@hone/core";
import "../../built-ins.ts";
import type { RolloutJob } from "../../rollout-job.ts";
import { play, rowOfLakeJob, writes } from "../../testing/lake-rollouts.ts";
import type { WritingPolicy } from "../../testing/row-rollouts.ts";

describe("the agent single_turn", () => {
  const configFiles: Readonly<Record<string, string>> = {
    "brief.yaml": JSON.stringify({ systemPrompt: "0" }),
  };
  const agentConfigAt = async (file: string): Promise<string> => {
    const json = configFiles[file];
    if (json === undefined) throw new TerminalError("NO_FILE", `no file ${file}`);
    return json;
  };
  const playRow = (
    row: Readonly<Record<string, unknown>>,
    policy: WritingPolicy,
    changes: Partial<RolloutJob> = {},
  ) => play(rowOfLakeJob(row, changes), policy, { agentConfigAt });

  test("renders the row's prompt by the chat template and takes one answer", async () => {
    const policy = writes("1,1");
    const prompt = [
      { role: "system", content: "0" },
      { role: "user", content: "1-1" },
    ];
    const record = await playRow({ prompt }, policy);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(policy.prompts[0], "<|system|>0<|user|>1-1<|assistant|>");
    assert.deepEqual(
      record.turns.map(({ responseText }) => responseText),
      ["1,1"],
    );
    assert.equal(policy.calls.length, 1);
  });

  test("takes a text as the user's message, and ends as truncated when the answer was cut off", async () => {
    const policy = writes("1".repeat(40));
    const record = await playRow({ prompt: "2,2" }, policy);
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(policy.prompts[0], "<|user|>2,2<|assistant|>");
  });

  test("a row's agent and its file take precedence over those of the run", async () => {
    const policy = writes("1");
    const row = { prompt: "1", agent_name: "single_turn", agent_cfg_path: "brief.yaml" };
    const { outcome } = await playRow(row, policy, {
      agentName: "frozen_lake",
      agentConfigJson: '{"historyTurns":2}',
    });
    assert.equal(outcome, Outcome.completed);
    assert.equal(policy.prompts[0], "<|system|>0<|user|>1<|assistant|>");
  });

  test("a row's agent does not get the configuration of the run's agent", async () => {
    const row = { prompt: "1", agent_name: "single_turn" };
    const { outcome } = await playRow(row, writes("1"), {
      agentName: "frozen_lake",
      agentConfigJson: '{"historyTurns":2}',
    });
    assert.equal(outcome, Outcome.completed);
  });

  for (const [what, row, reason] of [
    ["without a prompt", { question: "1" }, /`prompt` must be/],
    ["that names an unknown agent", { prompt: "1", agent_name: "single_trun" }, /did you mean "single_turn"/],
    ["that names a missing file", { prompt: "1", agent_cfg_path: "none.yaml" }, /no file none.yaml/],
  ] as const) {
    test(`a row ${what} ends as infra_failed after one attempt`, async () => {
      const policy = writes("1");
      const record = await playRow(row, policy);
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, reason);
      assert.deepEqual(record.failedAttempts, []);
      assert.equal(policy.calls.length, 0);
    });
  }
});
