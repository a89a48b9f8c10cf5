import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { problemOfRow } from "./check-rows.ts";

/** No judge compares with a ground truth. */
const NONE = { groundTruthFor: [] };

describe("problemOfRow()", () => {
  for (const row of [
    { prompt: "2+2?" },
    { prompt: [{ role: "user", content: "2+2?" }], agent_name: "tool_agent", agent_cfg_path: "a.yaml" },
    { prompt: [{ role: "user", content: [{ type: "text", text: "a" }] }] },
    { prompt: [{ role: "assistant", content: null, tool_calls: [{ function: { name: "f" } }] }] },
    // Some agents read no prompt.
    { question: "2+2?", prompt: null, agent_name: null },
  ]) {
    test(`accepts the row ${JSON.stringify(row)}`, () => assert.equal(problemOfRow(row, NONE), undefined));
  }

  for (const [row, rule] of [
    [{}, /at least one column/],
    [{ prompt: "a", agent_name: 7 }, /as agent_name/],
    [{ prompt: "" }, /as prompt/],
    [{ prompt: [] }, /as prompt/],
    [{ prompt: ["2+2?"] }, /as prompt/],
    [{ prompt: [{ content: "2+2?" }] }, /as prompt/],
  ] as const) {
    test(`refuses the row ${JSON.stringify(row)}`, () => assert.match(problemOfRow(row, NONE) ?? "", rule));
  }

  test("requires a ground truth only in rows of the data sources that a judge compares", () => {
    const row = { data_source: "openai/gsm8k", prompt: "2+2?" };
    const right = { ...row, reward_model: { style: "rule", ground_truth: 4 } };
    for (const groundTruthFor of [undefined, ["openai/gsm8k"]]) {
      assert.match(problemOfRow(row, { groundTruthFor }) ?? "", /reward_model\.ground_truth/);
      assert.equal(problemOfRow(right, { groundTruthFor }), undefined);
    }
    assert.equal(problemOfRow(row, { groundTruthFor: ["other"] }), undefined);
  });
});
