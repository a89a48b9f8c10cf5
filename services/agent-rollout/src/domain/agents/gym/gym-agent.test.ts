import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import "../../built-ins.ts";
import { LEAN_LAKE, lakeJob, lakeTokenizer, play, writes } from "../../testing/lake-rollouts.ts";

describe("the agent gym in a frozen lake", () => {
  test("gives each turn a prompt of its own when it shows no earlier turns", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    const { outcome, samples, turns, metrics } = await play(lakeJob(), policy);
    assert.equal(outcome, Outcome.truncated);
    assert.equal(turns.length, 10);
    assert.equal(samples.length, 10);
    for (const call of policy.calls) assert.equal(call.promptIds.length, 1 + 19 + 1 + 2 + 1);
    assert.deepEqual(metrics, {
      success: 0,
      action_is_valid: 0,
      action_is_effective: 0,
      steps: 10,
      done: 0,
    });
  });

  test("extends a single sample when it shows all turns", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    const asked = lakeJob({ agentConfigJson: JSON.stringify({ ...LEAN_LAKE, historyTurns: null }) });
    const { samples, turns } = await play(asked, policy);
    assert.equal(samples.length, 1);
    for (const [index, turn] of turns.entries()) {
      const seen = Array.from(samples[0]!.tokenIds).slice(0, turn.sampledBegin);
      assert.deepEqual(seen, [...policy.calls[index]!.promptIds]);
    }
  });

  test("shows as many earlier turns as its configuration says", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    const asked = lakeJob({ agentConfigJson: JSON.stringify({ ...LEAN_LAKE, historyTurns: 2 }) });
    await play(asked, policy);
    const shown = policy.calls.map(
      ({ promptIds }) => promptIds.filter((id) => id === lakeTokenizer.tokenId("<|user|>")).length,
    );
    assert.deepEqual(shown, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
  });

  test("puts ROLL's instruction before the first prompt only", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    const asked = lakeJob({
      agentConfigJson: JSON.stringify({
        systemPrompt: "0",
        instruction: "1-1",
        promptTemplate: "{turn},{actionsLeft}",
        historyTurns: null,
      }),
      limits: { ...lakeJob().limits, maxTurns: 2 },
    });
    await play(asked, policy);
    const second = lakeTokenizer.decode(policy.calls[1]!.promptIds);
    assert.ok(second.startsWith("<|system|>0<|user|>1-1\n1,2<|assistant|>"));
    assert.ok(second.endsWith("<|user|>2,1<|assistant|>"));
  });

  test("plays random legal moves without a model, and marks them as not sampled by a policy", async () => {
    const policy = writes("never asked");
    let successes = 0;
    for (let seed = 0; seed < 60; seed++) {
      const task = {
        id: `lake:${seed}`,
        environment: { name: "frozen_lake", seed, configJson: "{}" },
        row: undefined,
      };
      const asked = lakeJob({
        scriptedPolicy: "random_legal",
        task,
        slot: { ...lakeJob().slot, task: seed },
      });
      const record = await play(asked, policy);
      assert.deepEqual(record.metadata, { scriptedPolicy: "random_legal" });
      assert.equal(record.metrics.action_is_effective, 1);
      assert.ok(
        record.samples.every(({ logprobs, versions }) => logprobs.length === 0 && versions.length === 0),
      );
      assert.deepEqual(await play(asked, policy).then(({ samples }) => samples), record.samples);
      successes += record.metrics.success!;
    }
    assert.equal(policy.calls.length, 0);
    assert.ok(successes > 5 && successes < 30, `${successes}`);
  });

  test("records rewards and info of each turn, and the sum of the rewards", async () => {
    const seed = 5;
    const policy = writes("?", "<answer>Down</answer>");
    const configJson = JSON.stringify({ formatPenalty: -0.5, maxSteps: 2 });
    const record = await play(
      lakeJob({ task: { id: "l", environment: { name: "frozen_lake", seed, configJson }, row: undefined } }),
      policy,
    );
    assert.equal(record.turns[0]!.reward, -0.5);
    assert.equal(record.turns[0]!.info!.action_is_valid, false);
    assert.equal(record.turns[1]!.info!.action, "Down");
    assert.equal(
      record.environmentReturn,
      record.turns.reduce((sum, { reward }) => sum + reward!, 0),
    );
  });
});
