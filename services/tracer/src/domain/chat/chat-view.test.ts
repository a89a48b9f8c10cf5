/** Tests how turns are read as chats, for the templates of several families and for texts that were written to break it. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TurnSchema } from "@hone/proto-gen/rollout";
import { type ChatSource, chatOf } from "./chat-view.ts";

const plain: ChatSource = { chatTemplate: undefined, hasEnvironment: false };

function chat(promptText: string, responseText: string, source: Partial<ChatSource> = {}) {
  return chatOf(create(TurnSchema, { promptText, responseText }), { ...plain, ...source });
}

const shown = (promptText: string, responseText: string, source?: Partial<ChatSource>) =>
  chat(promptText, responseText, source).map(({ role, parts }) => [
    role,
    ...parts.map((part) => `${part.kind} ${"text" in part ? part.text.trim() : part.name}`),
  ]);

describe("chatOf()", () => {
  test("splits what a ChatML template rendered, and folds thoughts that the template opened", () => {
    const prompt =
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>\n";
    const answer =
      'add\n</think>\n\nSo <tool_call>\n{"name": "sum", "arguments": {"a": 2}}\n</tool_call><|im_end|>';
    assert.deepEqual(shown(prompt, answer), [
      ["system", "text Be brief."],
      ["user", "text 2+2?"],
      ["assistant", "thought add", "text So", "call sum"],
    ]);
  });

  test("shows results of tools, in a message of their own or between marks in one of the user", () => {
    const qwen =
      "<|im_start|>user\n<tool_response>\n4\n</tool_response>\nAnd now?<|im_end|>\n<|im_start|>assistant\n";
    assert.deepEqual(shown(qwen, "4<|im_end|>"), [
      ["user", "result 4", "text And now?"],
      ["assistant", "text 4"],
    ]);
    const llama =
      '<|start_header_id|>ipython<|end_header_id|>\n\n{"sum": 4}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n';
    assert.deepEqual(shown(llama, "4<|eot_id|>"), [
      ["tool", 'result {"sum": 4}'],
      ["assistant", "text 4"],
    ]);
  });

  test("calls what an environment says an observation", () => {
    assert.deepEqual(
      shown("<|user|>P_\n_G<|assistant|>", "<answer>Right</answer><|end|>", { hasEnvironment: true }),
      [
        ["user", "observation P_\n_G"],
        ["assistant", "text <answer>Right</answer>"],
      ],
    );
  });

  test("reads calls by the format that the chat template shows", () => {
    const answer =
      "<|channel|>analysis<|message|>look<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>";
    const gptOss = { chatTemplate: "<|channel|>…<|message|>" };
    assert.deepEqual(shown("<|start|>user<|message|>hi<|end|><|start|>assistant", answer, gptOss), [
      ["user", "text hi"],
      ["assistant", "thought look", "call f"],
    ]);
  });

  test("shows a call that cannot be read, with the reason", () => {
    const [, answer] = chat("<|user|>go<|assistant|>", '<tool_call>{"name": ');
    assert.equal(answer?.parts[0]?.kind, "invalid_call");
  });

  test("shows a text without any mark as it is", () => {
    assert.deepEqual(shown("What is 2+2?", "4"), [
      ["user", "text What is 2+2?"],
      ["assistant", "text 4"],
    ]);
  });

  test("an answer of a hundred thousand marks ends in time, and its parts are limited", {
    timeout: 60_000,
  }, () => {
    const hostile = [
      "</think>".repeat(100_000),
      "<think></think>a".repeat(100_000),
      "<tool_call>".repeat(100_000),
      '<tool_call>{"name":"f","arguments":{}}</tool_call>'.repeat(20_000),
      `${"<tool_call>{".repeat(50_000)}${"[".repeat(50_000)}`,
    ];
    for (const answer of hostile) {
      const messages = chat("<|im_start|>".repeat(50_000) + "<tool_response>".repeat(50_000), answer);
      assert.ok(
        messages.every(({ parts }) => parts.length <= 700),
        answer.slice(0, 30),
      );
    }
  });
});
