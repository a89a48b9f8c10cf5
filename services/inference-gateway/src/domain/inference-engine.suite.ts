/**
 * Tests of what every implementation of the port must do. An engine's test file calls {@link testInferenceEngine} with a factory.
 *
 * Exact engines (`isExact`) keep G1 bit by bit. The others need to keep it only in distribution, which a few samples cannot
 * show. An engine must refuse what it says that it cannot do.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FinishReason } from "@hone/rl";
import { InvalidRequestError, PolicyLoadError, VersionBehindError, VersionStaleError } from "./errors.ts";
import type { GenerateRequest, InferenceEngine, PolicySource } from "./inference-engine.ts";

export interface EngineUnderTest {
  readonly engine: InferenceEngine;
  /** Two versions of one small model, 1 and 2, and a third with different weights under another model name. */
  readonly first: PolicySource;
  readonly second: PolicySource;
  readonly other: PolicySource;
  /** All token ids of the models are below it. */
  readonly vocabularySize: number;
  /** Most tokens of a sequence. */
  readonly maxContextTokens: number;
  dispose(): Promise<void>;
}

export interface EngineSuiteOptions {
  /** Whether equal requests have bitwise equal answers, whatever else runs at the same time. */
  readonly isExact: boolean;
  /** Whether it holds one model at a time. @default false */
  readonly isSingleModel?: boolean;
  /** Whether its logprobs are those after top-p, top-k and min-p. @default true */
  readonly canTruncate?: boolean;
}

let called = 0;

/** Registers the suite. @param setUp makes a new engine without loaded models. */
export function testInferenceEngine(
  name: string,
  setUp: () => Promise<EngineUnderTest>,
  { isExact, isSingleModel = false, canTruncate = true }: EngineSuiteOptions,
): void {
  async function withEngine(use: (subject: EngineUnderTest) => Promise<void>): Promise<void> {
    const subject = await setUp();
    try {
      await use(subject);
    } finally {
      await subject.dispose();
    }
  }

  function ask(subject: EngineUnderTest, change: Partial<GenerateRequest> = {}): GenerateRequest {
    return {
      id: `suite-${called++}`,
      model: subject.first.model,
      promptIds: [1, 2, 3, 4, 5],
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 8, stopTokenIds: [] },
      seed: 7,
      sessionId: "session",
      groupId: "group",
      versionRange: { lowest: 0, highest: 1_000 },
      deadlineMs: 60_000,
      ...change,
    };
  }

  const many = (count: number) => Array.from({ length: count }, (_, i) => i);

  describe(`${name} as an InferenceEngine`, () => {
    test("generates maxNewTokens ids with a logprob and a version each", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const result = await subject.engine.generate(ask(subject));
        assert.equal(result.tokenIds.length, 8);
        assert.equal(result.logprobs.length, 8);
        assert.ok(
          result.tokenIds.every((id) => Number.isInteger(id) && id >= 0 && id < subject.vocabularySize),
        );
        assert.ok(result.logprobs.every((logprob) => logprob <= 0 && Number.isFinite(logprob)));
        assert.equal(result.finishReason, FinishReason.length);
        assert.deepEqual(result.versions, [{ version: subject.first.version, tokenCount: 8 }]);
        const { prefillTokens, cachedTokens, queueMs, prefillMs, decodeMs } = result.metrics;
        assert.equal(prefillTokens + cachedTokens, 5);
        assert.ok(queueMs >= 0 && prefillMs >= 0 && decodeMs >= 0);
      }));

    test("ends a generation at a stop token, which is the last of its ids", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, stopTokenIds: many(subject.vocabularySize) };
        const result = await subject.engine.generate(ask(subject, { sampling }));
        assert.equal(result.tokenIds.length, 1);
        assert.equal(result.finishReason, FinishReason.stop);
      }));

    test("chooses the most likely token at temperature 0, whatever the seed is", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, temperature: 0 };
        const answers = await Promise.all(
          many(3).map((seed) => subject.engine.generate(ask(subject, { sampling, seed }))),
        );
        assert.deepEqual(answers[1]!.tokenIds, answers[0]!.tokenIds);
        assert.deepEqual(answers[2]!.tokenIds, answers[0]!.tokenIds);
        assert.ok(answers[0]!.logprobs.every((logprob) => logprob === 0));
      }));

    test("samples other tokens with other seeds", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const answers = await Promise.all(
          many(8).map((seed) => subject.engine.generate(ask(subject, { seed }))),
        );
        assert.ok(new Set(answers.map((answer) => answer.tokenIds.join())).size > 1);
      }));

    test("samples only from the top-k tokens, with logprobs of their distribution", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, topK: 1 };
        if (!canTruncate) {
          const refused = subject.engine.generate(ask(subject, { sampling }));
          await assert.rejects(
            refused,
            (error) => error instanceof InvalidRequestError && error.path === "sampling.topK",
          );
          return;
        }
        const result = await subject.engine.generate(ask(subject, { sampling }));
        const greedy = await subject.engine.generate(
          ask(subject, { sampling: { ...sampling, topK: 0, temperature: 0 } }),
        );
        assert.deepEqual(result.tokenIds, greedy.tokenIds);
        assert.ok(result.logprobs.every((logprob) => Math.abs(logprob) < 1e-6));
      }));

    test("runs many generations at the same time", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const requests = many(64).map((i) =>
          ask(subject, { seed: i, promptIds: [1 + (i % 8), 2, 3, i % 5] }),
        );
        const together = await Promise.all(requests.map((request) => subject.engine.generate(request)));
        assert.ok(together.every((result) => result.tokenIds.length === 8));
        if (!isExact) return;
        for (const [i, request] of requests.entries()) {
          const again = await subject.engine.generate({ ...request, id: `${request.id}-again` });
          assert.deepEqual([again.tokenIds, again.logprobs], [together[i]!.tokenIds, together[i]!.logprobs]);
        }
      }));

    test("streams chunks that add up to the result", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const ids: number[] = [];
        const logprobs: number[] = [];
        const onTokens = (chunk: { tokenIds: readonly number[]; logprobs: readonly number[] }) => {
          ids.push(...chunk.tokenIds);
          logprobs.push(...chunk.logprobs);
        };
        const result = await subject.engine.generate(ask(subject), { onTokens });
        assert.deepEqual([ids, logprobs], [result.tokenIds, result.logprobs]);
      }));

    test("ends a generation that is aborted by id or by signal, and returns its tokens so far", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, maxNewTokens: subject.maxContextTokens - 5 };
        for (const how of ["id", "signal"] as const) {
          const request = ask(subject, { sampling });
          const controller = new AbortController();
          const end = () => (how === "id" ? subject.engine.abort(request.id) : controller.abort());
          const result = await subject.engine.generate(request, { onTokens: end, signal: controller.signal });
          assert.equal(result.finishReason, FinishReason.aborted);
          assert.ok(result.tokenIds.length > 0 && result.tokenIds.length < sampling.maxNewTokens);
        }
      }));

    test("ends a generation at its deadline", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, maxNewTokens: subject.maxContextTokens - 5 };
        const result = await subject.engine.generate(ask(subject, { sampling, deadlineMs: 2 }));
        assert.equal(result.finishReason, FinishReason.deadline);
        assert.ok(result.tokenIds.length < sampling.maxNewTokens);
      }));

    test("moves a generation to a new version, and labels each token with its version", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const before = await subject.engine.generate(ask(subject));
        const sampling = { ...ask(subject).sampling, maxNewTokens: subject.maxContextTokens - 5 };
        let loading: Promise<void> | undefined;
        const onTokens = () => {
          loading ??= subject.engine.loadPolicy(subject.second);
        };
        const moving = await subject.engine.generate(ask(subject, { sampling }), { onTokens });
        await loading;
        const counted = moving.versions.reduce((sum, span) => sum + span.tokenCount, 0);
        assert.equal(counted, moving.tokenIds.length);
        assert.equal(moving.versions[0]!.version, 1);
        const after = await subject.engine.generate(ask(subject));
        assert.deepEqual(after.versions, [{ version: 2, tokenCount: 8 }]);
        assert.notDeepEqual(after.logprobs, before.logprobs);
        assert.deepEqual(
          subject.engine.capacity().models.map((loaded) => loaded.versions),
          [[2]],
        );
      }));

    test("refuses versions outside the range, with an error that shows whether waiting can help", () =>
      withEngine(async (subject) => {
        const { engine } = subject;
        await assert.rejects(engine.generate(ask(subject)), VersionBehindError);
        await engine.loadPolicy(subject.second);
        const range = (lowest: number, highest: number) =>
          ask(subject, { versionRange: { lowest, highest } });
        await assert.rejects(engine.generate(range(3, 3)), VersionBehindError);
        await assert.rejects(engine.generate(range(0, 1)), VersionStaleError);
      }));

    test("refuses requests that break a rule, and names the rule", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const plain = ask(subject).sampling;
        const wrong: Record<string, Partial<GenerateRequest>> = {
          promptIds: { promptIds: [subject.vocabularySize] },
          "promptIds.length": { promptIds: [] },
          "sampling.temperature": { sampling: { ...plain, temperature: -1 } },
          "sampling.topP": { sampling: { ...plain, topP: 0 } },
          "sampling.topK": { sampling: { ...plain, topK: 1.5 } },
          "sampling.maxNewTokens": { sampling: { ...plain, maxNewTokens: 0 } },
          seed: { seed: -1 },
          versionRange: { versionRange: { lowest: 2, highest: 1 } },
        };
        for (const [path, change] of Object.entries(wrong)) {
          await assert.rejects(
            subject.engine.generate(ask(subject, change)),
            (error) => error instanceof InvalidRequestError && error.path === path,
            path,
          );
        }
        const long = { promptIds: new Array<number>(subject.maxContextTokens).fill(1) };
        await assert.rejects(subject.engine.generate(ask(subject, long)), InvalidRequestError);
      }));

    test("keeps the loaded version when a load fails", () =>
      withEngine(async (subject) => {
        await subject.engine.loadPolicy(subject.first);
        const broken = { ...subject.second, digest: "0".repeat(64) };
        await assert.rejects(subject.engine.loadPolicy(broken), PolicyLoadError);
        const missing = { ...subject.second, folder: `${subject.second.folder}-missing` };
        await assert.rejects(subject.engine.loadPolicy(missing), PolicyLoadError);
        const result = await subject.engine.generate(ask(subject));
        assert.deepEqual(result.versions, [{ version: 1, tokenCount: 8 }]);
      }));

    test("serves several models at the same time or one after the other, and unloads one of them", () =>
      withEngine(async (subject) => {
        const { engine, first, other } = subject;
        await engine.loadPolicy(first);
        if (isSingleModel) {
          await assert.rejects(engine.loadPolicy(other), PolicyLoadError);
          await engine.generate(ask(subject));
          await engine.unload(first.model);
          await engine.unload("never loaded");
          await assert.rejects(engine.generate(ask(subject)), VersionBehindError);
          await engine.loadPolicy(other);
          await engine.generate(ask(subject, { model: other.model }));
          return;
        }
        await engine.loadPolicy(other);
        const [a, b] = await Promise.all([
          engine.generate(ask(subject)),
          engine.generate(ask(subject, { model: other.model })),
        ]);
        assert.notDeepEqual(a!.logprobs, b!.logprobs);
        await engine.unload(first.model);
        await engine.unload("never loaded");
        await assert.rejects(engine.generate(ask(subject)), VersionBehindError);
        assert.deepEqual(
          engine.capacity().models.map((loaded) => loaded.model),
          [other.model],
        );
        await engine.generate(ask(subject, { model: other.model }));
      }));

    test("close() ends running generations, refuses new ones, and may be called twice", () =>
      withEngine(async (subject) => {
        const { engine } = subject;
        await engine.loadPolicy(subject.first);
        const sampling = { ...ask(subject).sampling, maxNewTokens: subject.maxContextTokens - 5 };
        let closing: Promise<void> | undefined;
        const onTokens = () => {
          closing ??= engine.close();
        };
        const result = await engine.generate(ask(subject, { sampling }), { onTokens });
        assert.equal(result.finishReason, FinishReason.aborted);
        await closing;
        await engine.close();
        await assert.rejects(engine.generate(ask(subject)), { code: "ENGINE_FAILED" });
      }));
  });
}
