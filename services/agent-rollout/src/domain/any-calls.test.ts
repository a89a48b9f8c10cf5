/** Whatever a model with tools writes, the record holds what the engine saw, and trains each sampled token exactly once. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { checkSample } from "@hone/rl";
import { fuzz } from "@hone/testing/fuzz";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import fc from "fast-check";
import "./built-ins.ts";
import type { RolloutRecord } from "./rollout-job.ts";
import { rowJob, runJob, WritingPolicy } from "./testing/row-rollouts.ts";

const LEGAL: ReadonlySet<Outcome> = new Set([Outcome.completed, Outcome.truncated]);
const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));

const call = (name: string, args: unknown) =>
  `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
const part = fc.oneof(
  fc.integer({ min: 0, max: 99 }).map((n) => call("calculator", { expression: `${n} * 7` })),
  fc.constantFrom(
    call("calculator", { expression: "1 / 0" }),
    call("calculator", { expression: 7 }),
    call("nothing", { a: [1, { b: null }] }),
    '<tool_call>\n{"name":  "calculator", "arguments": {"expression":"1 + 1"}}\n</tool_call>',
    "<tool_call>broken</tool_call>",
    "<tool_call>{",
    "</tool_call>",
    "<think>\nhm\n</think>\n\n",
    "<|im_end|>",
    "<|im_start|>user\n",
    " \n ",
  ),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const answers = fc.array(
  fc.array(part, { maxLength: 4 }).map((parts) => parts.join("")),
  {
    minLength: 1,
    maxLength: 5,
  },
);

/** Checks that the samples hold exactly what the engine saw, and that only sampled tokens are trained. */
function checkRecord(record: RolloutRecord, policy: WritingPolicy): void {
  const left = record.samples.map(({ lossMask }) => Uint8Array.from(lossMask));
  record.samples.forEach((sample, index) => {
    checkSample(sample, `sample ${index}`);
  });
  assert.equal(record.turns.length, policy.calls.length);
  for (const [turn, { sample, sampledBegin, sampledEnd }] of record.turns.entries()) {
    const tokenIds = Array.from(record.samples[sample]!.tokenIds);
    assert.deepEqual(tokenIds.slice(0, sampledBegin), [...policy.calls[turn]!.promptIds]);
    for (let at = sampledBegin; at < sampledEnd; at++) {
      assert.equal(left[sample]![at], 1, `turn ${turn}, position ${at} is trained once`);
      left[sample]![at] = 0;
    }
  }
  for (const mask of left) assert.ok(!mask.includes(1), "nothing else is trained");
}

describe("an attempt with a model that writes arbitrary tool calls", () => {
  for (const agent of ["tool_agent", "react"]) {
    test(`ends with an allowed outcome and an exact record: ${agent}`, async () => {
      await fc.assert(
        fc.asyncProperty(answers, async (texts) => {
          const policy = new WritingPolicy(renderer, ...texts);
          const config = { tools: ["calculator"], maxToolAnswerTokens: 64 };
          const record = await runJob(rowJob(agent, { prompt: "6 * 7?" }, { config }), renderer, policy);
          assert.ok(LEGAL.has(record.outcome), `${record.outcome}: ${record.reason}`);
          checkRecord(record, policy);
        }),
        fuzz(agent === "react" ? 40 : 150),
      );
    });
  }
});
