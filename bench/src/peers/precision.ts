/** What both sides of a comparison compute in. */

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
/** The fastest of each side. */
export const BEST: Precision = {
  suffix: "-8bit",
  title: ", eight bits against bfloat16",
  hone: Quantization.int8,
  peers: "bfloat16",
};

/** The target of a row in a precision. */
export function targetIn(precision: Precision, targets: { readonly float32: Target; readonly best: Target }) {
  return precision === FLOAT32 ? targets.float32 : targets.best;
}

/** Least ratios. */
export function atLeast(bar: number, aim: number): Target {
  return { kind: "at least", bar, aim };
}
