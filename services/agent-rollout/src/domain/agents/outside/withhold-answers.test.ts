import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withholdAnswers } from "./withhold-answers.ts";

/* A policy that is rewarded for the answer, and can see what its agent gets, would copy the answer from there. */

const ANSWER = "the secret answer";
const PROMPT = [{ role: "user", content: "What is it?" }];

describe("a row without its answer", () => {
  const rows: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    "verl, gsm8k": {
      data_source: "openai/gsm8k",
      prompt: PROMPT,
      reward_model: { style: "rule", ground_truth: ANSWER },
      extra_info: { index: 3, split: "train", question: "What is it?", answer: ANSWER },
    },
    "verl, with tools": {
      prompt: PROMPT,
      extra_info: {
        need_tools_kwargs: true,
        tools_kwargs: { calc_reward: { create_kwargs: { ground_truth: ANSWER, level: 3 } } },
        interaction_kwargs: { query: "What is it?", ground_truth: ANSWER },
      },
    },
    "ROLL, math and code": {
      prompt: "What is it?",
      ground_truth: ANSWER,
      solution: ANSWER,
      test_cases: JSON.stringify([{ assert_code: ANSWER }]),
      tag: "math",
    },
    "search QA": {
      prompt: "What is it?",
      golden_answers: [ANSWER],
      metadata: { supporting: [{ answer: ANSWER }] },
    },
    "texts that are JSON": {
      prompt: "What is it?",
      extra_info: JSON.stringify({ index: 3, GroundTruth: ANSWER }),
      list: `[{"final-answer": "${ANSWER}", "kept": 1}]`,
    },
    "imitation and preferences": {
      prompt: "What is it?",
      messages: [...PROMPT, { role: "assistant", content: ANSWER }],
      chosen: ANSWER,
      rejected: "no",
      response: ANSWER,
    },
  };
  for (const [form, row] of Object.entries(rows)) {
    test(`${form}: it keeps the prompt and does not contain the answer`, () => {
      assert.ok(JSON.stringify(row).includes(ANSWER));
      const given = withholdAnswers(row);
      assert.ok(!JSON.stringify(given).includes(ANSWER), JSON.stringify(given));
      assert.deepEqual(given.prompt, row.prompt);
    });
  }

  test("all other columns are unchanged", () => {
    const row = {
      data_source: "qa",
      prompt: PROMPT,
      documents: [{ title: "t", text: "{not JSON" }],
      config: '{ "level": 3 }',
      difficulty: 2,
      none: null,
      extra_info: { index: 3 },
    };
    assert.deepEqual(withholdAnswers({ ...row, answer: "x" }), row);
  });
});
