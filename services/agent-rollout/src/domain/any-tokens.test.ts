/** Whatever a model samples, an attempt ends with an allowed outcome, and its record trains each sampled token exactly once. */

import assert from "node:assert/strict";
import path from "node:path";
import { before, describe, test } from "node:test";
import {
  AgentCatalog,
  AgentModules,
  type GenerateCall,
  type Policy,
  type PolicyGeneration,
} from "@hone/agents";
import { CodeGate } from "@hone/config";
import { Outcome, Random } from "@hone/core";
import { checkSample, FinishReason } from "@hone/rl";
import { contextOfTraceparent } from "@hone/telemetry";
import { fuzz } from "@hone/testing/fuzz";
import { ChatRenderer, loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import fc from "fast-check";
import "./built-ins.ts";
import { Endpoints } from "./endpoints.ts";
import type { RolloutJob, RolloutRecord } from "./rollout-job.ts";
import { runRollout } from "./run-rollout.ts";
import { SessionHost } from "./sessions/session-host.ts";

const EXAMPLE = path.join(import.meta.dirname, "../../../../examples/01-frozen-lake");
const VERSION = 4;
/** The outcomes that are possible with a policy that always answers. */
const LEGAL: ReadonlySet<Outcome> = new Set([
  Outcome.completed,
  Outcome.truncated,
  Outcome.timedOut,
  Outcome.agentFailed,
]);

let tokenizer: Tokenizer;
let renderer: ChatRenderer;
before(async () => {
  tokenizer = await loadTokenizer(EXAMPLE);
  renderer = new ChatRenderer(tokenizer);
});

/** What the policy answers in one turn. */
type Answer =
  | { readonly kind: "nothing" }
  /** Any ids of the vocabulary, including control tokens. */
  | { readonly kind: "ids"; readonly seed: number; readonly count: number; readonly finish: FinishReason }
  | { readonly kind: "control"; readonly count: number; readonly finish: FinishReason }
  | { readonly kind: "text"; readonly text: string };

const finish = fc.constantFrom(FinishReason.stop, FinishReason.length, FinishReason.aborted);
const count = fc.integer({ min: 1, max: 40 });
const answer: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("nothing" as const) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("ids" as const), seed: fc.nat(), count, finish }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("control" as const), count, finish }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("text" as const),
      text: fc.oneof(
        fc.constantFrom("<answer>Right</answer>", "<answer>Down</answer>", "<answer>", "</answer>"),
        fc.string({ unit: "binary", maxLength: 20 }),
      ),
    }),
  },
);

/** Gives the answers one after the other, and keeps what it sampled. */
class AnyTokens implements Policy {
  readonly sampled: number[][] = [];
  readonly #answers: readonly Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = answers;
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const asked = this.#answers[this.sampled.length % this.#answers.length]!;
    const tokenIds = idsOf(asked).slice(0, call.sampling.maxNewTokens);
    const isStop = tokenizer.stopTokenIds.includes(tokenIds.at(-1) ?? -1);
    const given = "finish" in asked ? asked.finish : FinishReason.stop;
    // An engine ends with "stop" only after a stop token.
    const finishReason = given === FinishReason.stop && !isStop ? FinishReason.length : given;
    this.sampled.push(tokenIds);
    return {
      tokenIds,
      logprobs: tokenIds.map(() => -0.5),
      versions: [{ version: VERSION, tokenCount: tokenIds.length }],
      finishReason,
      cachedTokens: 0,
      generationMs: 1,
      replica: "test",
    };
  }
}

function idsOf(asked: Answer): number[] {
  switch (asked.kind) {
    case "nothing":
      return [];
    case "ids": {
      const random = new Random(asked.seed);
      return Array.from({ length: asked.count }, () => random.nextInt(tokenizer.vocabSize));
    }
    case "control":
      return Array.from({ length: asked.count }, () => tokenizer.stopTokenIds[0]!);
    case "text":
      return [...tokenizer.encode(asked.text), tokenizer.stopTokenIds[0]!];
  }
}

function jobWith(historyTurns: number | null): RolloutJob {
  return {
    runId: "run-1",
    slot: { split: "train", step: 5, task: 3, index: 1 },
    runSeed: 7,
    task: { id: "lake:5", environment: { name: "frozen_lake", seed: 5, configJson: "{}" }, row: undefined },
    agentName: "frozen_lake",
    agentConfigJson: JSON.stringify({
      systemPrompt: "",
      instruction: "",
      promptTemplate: "{observation}\n{player_row}{player_column}",
      historyTurns,
    }),
    agentModules: [],
    endpoint: undefined,
    scriptedPolicy: undefined,
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 32 },
    limits: { maxTurns: 6, maxContextTokens: 160, deadlineMs: 60_000, maxAttempts: 1 },
    lowestVersion: VERSION,
    highestVersion: VERSION,
    maxStaleness: undefined,
    resumption: 0,
    tokenizerPath: "",
    tokenizerDigest: "",
  };
}

/** Checks that the trained tokens of every sample are where the turns say, and are the sampled ones, each once. */
function checkRecord(record: RolloutRecord, sampled: readonly (readonly number[])[], limit: number): void {
  const trained = record.samples.map(({ lossMask }) => Uint8Array.from(lossMask));
  record.samples.forEach((sample, index) => {
    checkSample(sample, `sample ${index}`);
    assert.ok(sample.tokenIds.length <= limit, `${sample.tokenIds.length} tokens`);
  });
  const answered = sampled.filter((tokenIds) => tokenIds.length > 0);
  assert.equal(record.turns.length, answered.length);
  record.turns.forEach(({ sample, sampledBegin, sampledEnd }, turn) => {
    const { tokenIds } = record.samples[sample]!;
    assert.deepEqual(Array.from(tokenIds).slice(sampledBegin, sampledEnd), answered[turn]);
    for (let at = sampledBegin; at < sampledEnd; at++) {
      assert.equal(trained[sample]![at], 1, `turn ${turn}, position ${at} is trained once`);
      trained[sample]![at] = 0;
    }
  });
  for (const mask of trained) assert.ok(!mask.includes(1), "nothing else is trained");
}

describe("an attempt with a model that samples arbitrary tokens", () => {
  for (const historyTurns of [0, null]) {
    const agent = historyTurns === null ? "one that shows all turns" : "one without history";
    test(`ends with an allowed outcome and trains each sampled token once: ${agent}`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(answer, { minLength: 1, maxLength: 6 }), async (answers) => {
          const policy = new AnyTokens(answers);
          const job = jobWith(historyTurns);
          const gate = new CodeGate({ filesFolder: import.meta.dirname });
          const record = await runRollout(
            job,
            {
              policy,
              agents: new AgentCatalog({ filesFolder: import.meta.dirname, gate }),
              modules: new AgentModules(gate),
              rendererOf: async () => renderer,
              endpoints: new Endpoints({}),
              sessions: new SessionHost("http://127.0.0.1:1"),
              agentConfigAt: async () => "{}",
            },
            { signal: new AbortController().signal, trace: contextOfTraceparent(undefined) },
          );
          assert.ok(LEGAL.has(record.outcome), `${record.outcome}: ${record.reason}`);
          checkRecord(record, policy.sampled, job.limits.maxContextTokens);
        }),
        fuzz(200),
      );
    });
  }
});
