/** What both sides of a comparison compute in. */

import { readFileSync } from "node:fs";
import { Quantization } from "@hone/rl";
import type { Target } from "./comparison.ts";

export interface Precision {
  /** Ends the names of the rows that `--only` takes. */
  readonly suffix: string;
  /** Of the titles of rows. */
  readonly title: string;
  /** How Hone generates, and computes the forward pass of training. */
  readonly hone: Quantization;
  /** What the peers compute in: the type's name in PyTorch. */
  readonly peers: "float32" | "bfloat16";
}

/** The same arithmetic on both sides. */
export const FLOAT32: Precision = { suffix: "", title: "", hone: Quantization.none, peers: "float32" };

/** How Linux names products of bfloat16 among the flags of x64 and Arm processors. Elsewhere they are emulated, slower than float32. */
const BFLOAT16_FLAG = /\b(?:avx512_bf16|amx_bf16|bf16)\b/;

const peersBest = BFLOAT16_FLAG.test(readFileSync("/proc/cpuinfo", "utf8")) ? "bfloat16" : "float32";

/** The fastest of each side on this processor. */
export const BEST: Precision = {
  suffix: "-8bit",
  title: `, eight bits against ${peersBest}`,
  hone: Quantization.int8,
  peers: peersBest,
};

/** The target of a row in a precision. */
export function targetIn(precision: Precision, targets: { readonly float32: Target; readonly best: Target }) {
  return precision === FLOAT32 ? targets.float32 : targets.best;
}

/** Least ratios. */
export function atLeast(bar: number, aim: number): Target {
  return { kind: "at least", bar, aim };
}
