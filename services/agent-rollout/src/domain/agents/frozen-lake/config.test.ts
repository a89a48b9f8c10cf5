import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fillTemplate, frozenLakeAgentConfigSchema } from "./config.ts";

describe("the configuration of frozen_lake", () => {
  test("defaults to ROLL's common prompts", () => {
    const { systemPrompt, instruction, promptTemplate, historyTurns } = frozenLakeAgentConfigSchema.parse({});
    assert.match(systemPrompt, /^You're a helpful assistant\. You are a good game player\./);
    assert.match(
      instruction,
      /format is <answer>Right<\/answer>\nThe meaning of each symbol in the state is:\nP: player/,
    );
    assert.match(
      promptTemplate,
      /^Turn \{turn\}:\nObservation:\n\{observation\}\nStrictly follow this format:\n1\. output format is/,
    );
    assert.equal(historyTurns, null);
  });

  test("refuses an unknown placeholder, and accepts other braces", () => {
    assert.equal(
      frozenLakeAgentConfigSchema.safeParse({ promptTemplate: "{observation} {colour}" }).success,
      false,
    );
    assert.equal(
      frozenLakeAgentConfigSchema.safeParse({ promptTemplate: '{observation} {"a": 1} {}' }).success,
      true,
    );
  });

  test("fillTemplate() inserts every value unchanged, even one that looks like a placeholder", () => {
    const filled = fillTemplate("{turn}/{turn} {observation} {x}", { turn: 2, observation: "{turn}" });
    assert.equal(filled, "2/2 {turn} {x}");
  });
});
