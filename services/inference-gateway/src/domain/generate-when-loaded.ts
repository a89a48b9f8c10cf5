/** Generates after a wait for the version, if necessary: rule 6 of the architecture, "the right policy". */

import { VersionBehindError } from "./errors.ts";
import type {
  EngineGeneration,
  GenerateOptions,
  GenerateRequest,
  InferenceEngine,
} from "./inference-engine.ts";
import type { PolicyKeeper } from "./policy-keeper.ts";

export interface GenerateWhenLoadedOptions extends GenerateOptions {
  /** Longest wait for a version; 0 = refuse at once. */
  readonly versionWaitMs: number;
}

/**
 * Generates. While no loaded version is new enough, it waits for the next load and tries again.
 * @throws {VersionBehindError} when the wait is over, or the request's own deadline.
 * @throws the other errors of {@link InferenceEngine.generate}.
 */
export async function generateWhenLoaded(
  engine: InferenceEngine,
  keeper: PolicyKeeper,
  request: GenerateRequest,
  options: GenerateWhenLoadedOptions,
): Promise<EngineGeneration> {
  const { versionWaitMs, signal, onTokens } = options;
  const startedAt = performance.now();
  const mayWaitMs = Math.min(versionWaitMs, request.deadlineMs);
  for (let waitedMs = 0; ; waitedMs = performance.now() - startedAt) {
    try {
      const deadlineMs = Math.max(1, request.deadlineMs - waitedMs);
      return await engine.generate({ ...request, deadlineMs }, { signal, onTokens });
    } catch (error) {
      const leftMs = mayWaitMs - (performance.now() - startedAt);
      if (!(error instanceof VersionBehindError) || leftMs <= 0 || signal?.aborted) throw error;
      await keeper.nextLoad(request.model, leftMs, signal);
    }
  }
}
