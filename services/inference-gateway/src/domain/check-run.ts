/** Whether the embedded engine can do what a run asks of it. */

import { type ConfigProblem, problemMessage, type RunConfig } from "@hone/config";
import { ModelSpecError, resolveModelSpec } from "@hone/nn";
import { contextTokensIn } from "./embedded/kv-pool.ts";

/** @param maxCacheBytes memory for keys and values of one policy version. */
export function checkRun(run: RunConfig, maxCacheBytes: number): ConfigProblem[] {
  const { init } = run.model;
  try {
    // The vocabulary comes with the tokenizer and changes nothing here.
    const spec = resolveModelSpec({
      vocabSize: 1,
      hiddenSize: init.hiddenSize,
      numLayers: init.numLayers,
      numHeads: init.numHeads,
      ...(init.numKvHeads !== undefined && { numKeyValueHeads: init.numKvHeads }),
      ...(init.headDim !== undefined && { headDim: init.headDim }),
      ...(init.intermediateSize !== undefined && { intermediateSize: init.intermediateSize }),
      maxPositions: init.maxPositions,
    });
    const most = contextTokensIn(spec, maxCacheBytes);
    const asked = run.rollout.maxContextTokens;
    if (asked <= most) return [];
    const allowed = `at most ${most}, which the engine's ${Math.floor(maxCacheBytes / 2 ** 20)} MiB for keys and values hold`;
    return [problem("rollout.maxContextTokens", asked, allowed)];
  } catch (error) {
    if (!(error instanceof ModelSpecError)) throw error;
    return [problem("model.init", init, error.message)];
  }
}

function problem(key: string, value: unknown, allowed: string): ConfigProblem {
  return { key, value, allowed, message: problemMessage(key, value, allowed) };
}
