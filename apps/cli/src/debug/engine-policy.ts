/** A policy that generates with the embedded engine in this process, without a gateway. */

import { type Policy, PolicyRefusedError } from "@hone/agents";
import { digestOfMerged } from "@hone/checkpoint";
import { InvalidInputError } from "@hone/core";
import { EmbeddedEngine } from "@hone/inference-gateway/engine";
import { FinishReason } from "@hone/rl";
import type { StartWeights } from "@hone/trainer/start-model";

export interface EnginePolicyOptions {
  readonly weights: StartWeights;
  /** Name of the model in the rollouts' requests. */
  readonly model: string;
  readonly version: number;
  /** Memory for the cache of keys and values. */
  readonly maxCacheBytes: number;
}

/**
 * Loads a model.
 * @throws {PolicyLoadError} when the folder holds no model that the engine can serve.
 */
export async function openEnginePolicy(options: EnginePolicyOptions): Promise<Policy & AsyncDisposable> {
  const { weights, model, version, maxCacheBytes } = options;
  // One rollout sends one request at a time, or a few if its agent works in parallel.
  const engine = new EmbeddedEngine({ maxSequences: 16, maxCacheBytes });
  try {
    await engine.loadPolicy({ model, version, ...weights, digest: await digestOfMerged(weights.folder) });
  } catch (error) {
    await engine.close();
    throw error;
  }
  const policy: Policy = {
    async generate({ sampling, stopTokenIds, requestId: id, lowestVersion, highestVersion, ...call }) {
      const { onTokens, signal } = call;
      const request = {
        id,
        model: call.model,
        promptIds: call.promptIds,
        sampling: { ...sampling, stopTokenIds },
        seed: call.seed,
        sessionId: call.sessionId,
        groupId: call.groupId,
        versionRange: { lowest: lowestVersion, highest: highestVersion },
        deadlineMs: call.deadlineMs,
      };
      try {
        const { tokenIds, logprobs, finishReason, versions, metrics } = await engine.generate(request, {
          signal,
          ...(onTokens !== undefined && { onTokens: (chunk) => onTokens(chunk.tokenIds) }),
        });
        signal.throwIfAborted();
        return {
          tokenIds,
          logprobs,
          versions,
          finishReason: finishReason === FinishReason.deadline ? FinishReason.aborted : finishReason,
          cachedTokens: metrics.cachedTokens,
          generationMs: metrics.prefillMs + metrics.decodeMs,
          replica: "this process",
        };
      } catch (error) {
        if (error instanceof InvalidInputError) throw new PolicyRefusedError(error.message);
        throw error;
      }
    },
  };
  return Object.assign(policy, { [Symbol.asyncDispose]: () => engine.close() });
}
