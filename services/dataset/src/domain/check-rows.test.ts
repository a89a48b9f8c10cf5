import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { problemOfRow } from "./check-rows.ts";

describe("problemOfRow()", () => {
  for (const row of [
    { prompt: "2+2?" },
    { prompt: [{ role: "user", content: "2+2?" }], agent_name: "tool_agent", agent_cfg_path: "a.yaml" },
    { prompt: [{ role: "user", content: [{ type: "text", text: "a" }] }] },
    // Not every agent reads a prompt.
    { question: "2+2?", prompt: null, agent_name: null },
  ]) {
    test(`takes ${JSON.stringify(row)}`, () => assert.equal(problemOfRow(row), undefined));
  }

  for (const [row, rule] of [
    [{}, /at least one column/],
    [{ prompt: "a", agent_name: 7 }, /as agent_name/],
    [{ prompt: "" }, /as prompt/],
    [{ prompt: [] }, /as prompt/],
    [{ prompt: ["2+2?"] }, /as prompt/],
    [{ prompt: [{ content: "2+2?" }] }, /as prompt/],
  ] as const) {
    test(`refuses ${JSON.stringify(row)}`, () => assert.match(problemOfRow(row) ?? "", rule));
  }
});
