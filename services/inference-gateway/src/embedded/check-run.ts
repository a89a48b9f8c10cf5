/** Checks whether the embedded engine can generate for a run. */

import { type ConfigProblem, type ModelInit, problemMessage, type RunConfig } from "@hone/config";
import {
  contextLayoutFor,
  type ModelConfig,
  type ModelSpec,
  ModelSpecError,
  resolveModelSpec,
  specFromConfig,
} from "@hone/nn";
import { contextTokensIn } from "./cache/kv-rows.ts";
import { fitsBytes } from "./cache/row-layout.ts";

/**
 * @param model config.json of the run's model; undefined = not known, and then a pretrained model is not checked.
 * @param maxCacheBytes memory for keys and values of one policy version.
 */
export function checkRun(
  run: RunConfig,
  model: ModelConfig | undefined,
  maxCacheBytes: number,
): ConfigProblem[] {
  try {
    const spec = model === undefined ? specOf(run.model) : specFromConfig(model);
    if (spec === undefined) return [];
    const asked = run.rollout.maxContextTokens;
    const hasBytes = run.rollout.quantization === "int8" && contextLayoutFor(spec) === "slots";
    if (hasBytes && !fitsBytes(spec)) {
      const allowed = `none for this model, whose heads have ${spec.headDim} channels; eight bits need a multiple of 4`;
      return [problem("rollout.quantization", run.rollout.quantization, allowed)];
    }
    const most = contextTokensIn(spec, maxCacheBytes, hasBytes ? "int8" : undefined);
    const memory = `${Math.floor(maxCacheBytes / 2 ** 20)} MiB for keys and values`;
    const limits: readonly [tokens: number, allowed: string][] = [
      [spec.maxPositions, `at most ${spec.maxPositions}, the positions of the model`],
      [most, `at most ${most}, which the engine's ${memory} hold`],
    ];
    const broken = limits.find(([tokens]) => asked > tokens);
    return broken === undefined ? [] : [problem("rollout.maxContextTokens", asked, broken[1])];
  } catch (error) {
    if (!(error instanceof ModelSpecError)) throw error;
    return [problem("model", run.model, error.message)];
  }
}

/** The model's spec, as far as the run file says it. */
function specOf(model: RunConfig["model"]): ModelSpec | undefined {
  if ("path" in model) return undefined;
  const init: ModelInit = model.init;
  return resolveModelSpec({
    // The size of the vocabulary is not in the run file, and has no effect here.
    vocabSize: 1,
    hiddenSize: init.hiddenSize,
    numLayers: init.numLayers,
    numHeads: init.numHeads,
    ...(init.numKvHeads !== undefined && { numKeyValueHeads: init.numKvHeads }),
    ...(init.headDim !== undefined && { headDim: init.headDim }),
    maxPositions: init.maxPositions,
  });
}

function problem(key: string, value: unknown, allowed: string): ConfigProblem {
  return { key, value, allowed, message: problemMessage(key, value, allowed) };
}
