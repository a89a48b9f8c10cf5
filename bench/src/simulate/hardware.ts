/**
 * Speeds of engines and training on GPUs, by arithmetic: bytes over bandwidth and operations over peak, each times the share of
 * the peak that such programs reach. They say which of two plans is better; figures of one's own cluster go before them.
 */

import type { EngineSpeed } from "./shared-engine.ts";

export interface Gpu {
  /** Dense bfloat16 operations a second. */
  readonly operations: number;
  /** Bytes a second of its memory. */
  readonly bandwidth: number;
}

/** Data sheets of the SXM versions. */
export const GPUS: Readonly<Record<string, Gpu>> = {
  a100: { operations: 312e12, bandwidth: 2.0e12 },
  h100: { operations: 989e12, bandwidth: 3.35e12 },
  h200: { operations: 989e12, bandwidth: 4.8e12 },
};

/** Shares of the peak that decoding and training reach in practice. */
const BANDWIDTH_SHARE = 0.6;
const DECODE_SHARE = 0.4;
const TRAIN_SHARE = 0.35;
const BYTES_PER_WEIGHT = 2;
/** Forward and backward pass; two operations are a multiplication and an addition. */
const OPERATIONS_PER_TRAINED_TOKEN = 6;
const OPERATIONS_PER_READ_TOKEN = 2;
const MS = 1_000;

/** Decoding on a replica of several GPUs that share a model of so many parameters. */
export function engineSpeed(gpu: Gpu, gpus: number, parameters: number): EngineSpeed {
  return {
    baseMs: (MS * BYTES_PER_WEIGHT * parameters) / (gpu.bandwidth * gpus * BANDWIDTH_SHARE),
    perSequenceMs: (MS * OPERATIONS_PER_READ_TOKEN * parameters) / (gpu.operations * gpus * DECODE_SHARE),
  };
}

/** Time to train on tokens, in milliseconds. */
export function trainingMs(gpu: Gpu, gpus: number, parameters: number, tokens: number): number {
  return (MS * OPERATIONS_PER_TRAINED_TOKEN * parameters * tokens) / (gpu.operations * gpus * TRAIN_SHARE);
}
