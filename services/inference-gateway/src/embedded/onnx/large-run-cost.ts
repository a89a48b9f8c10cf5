/** What runs of a large model cost, by which the engine plans its steps. */

import { type ContextLayout, listParameters, type ModelSpec, parameterSize } from "@hone/nn";
import type { EightBitType } from "@hone/tensor";
import { contextBytesPerToken } from "../cache/kv-rows.ts";
import type { RunCost } from "../policy-runner.ts";

/** Most new tokens of a run of a large model, so that the values between its layers stay in the processor's cache. */
const MAX_RUN_TOKENS = 512;

/** In its first step a run fills slots, which takes longer than a step. */
const TURN_STEPS = 16;

/**
 * The approximate speed of two cores per microsecond while a large model runs: bytes read from memory, and additions with
 * multiplications of attention. Wrong values make it slower, but do not change samples.
 */
const BYTES_PER_US = 15_000;
/** A pooled row is read, written to its sequence's position, and read there. */
const POOLED_PASSES = 3;
const FLOP_PER_US = 80_000;

/** The cost of runs of a large model: reading its weights and contexts, and attention. */
export function largeRunCost(
  spec: ModelSpec,
  layout: ContextLayout,
  eightBits: EightBitType | undefined,
  maxCacheBytes: number,
): RunCost {
  const bytesPerRow = contextBytesPerToken(spec, layout === "slots" ? eightBits : undefined);
  const passes = layout === "slots" ? 1 : POOLED_PASSES;
  const parameters = listParameters(spec).reduce((sum, parameter) => sum + parameterSize(parameter), 0);
  const weightBytes = eightBits === undefined ? Float32Array.BYTES_PER_ELEMENT : 1;
  return {
    perRun: (parameters * weightBytes) / BYTES_PER_US,
    perContextRow: (passes * bytesPerRow) / BYTES_PER_US,
    perAttention: (4 * spec.numLayers * spec.numHeads * spec.headDim) / FLOP_PER_US,
    perToken: (2 * parameters) / FLOP_PER_US,
    maxContextRows: Math.max(spec.maxPositions, maxCacheBytes / bytesPerRow),
    maxNewTokens: MAX_RUN_TOKENS,
    ...(layout === "slots" && { turnSteps: TURN_STEPS }),
    isExact: layout === "slots" && eightBits !== undefined,
  };
}
