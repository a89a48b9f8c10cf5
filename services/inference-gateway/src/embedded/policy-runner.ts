/**
 * What the engine core asks of the weights of one policy version: compute tokens, keep their K/V, give logits.
 * The ONNX session stands behind it; the core knows rows and tokens only.
 */

import type { RowMasses } from "../domain/sampling/sampling-row.ts";

/** Consecutive tokens of one sequence to compute: `tokens[start, start + count)`. */
export interface RunItem {
  /** The sequence so far. */
  readonly tokens: Int32Array;
  /** Pool page of every PAGE_ROWS positions; the rows before `start` hold K/V already, the next `count` receive it. */
  readonly pages: Int32Array;
  readonly start: number;
  readonly count: number;
  /** Whether the logits after the last of these tokens are wanted. */
  readonly wantsLogits: boolean;
  /** At which the token after them is drawn; 1 by default. */
  readonly temperature?: number;
  /** In [0, 1): by which it is drawn; 0 by default. */
  readonly uniform?: number;
  /** Whether one block of its logits is enough, as it is drawn from all tokens. */
  readonly isFromAll?: boolean;
}

/** Limits that the weights set. */
export interface PolicyLimits {
  readonly vocabularySize: number;
  /** Longest sequence, prompt and new tokens together. */
  readonly maxContextTokens: number;
}

/** What a run gives. */
export interface RunOutput {
  /** Rows [S, V] of the items that want logits, in their order; valid until the next run. Absent where none is wanted whole. */
  readonly logits: Float32Array | undefined;
  /** Sums over each of these rows, where the vocabulary is large. */
  readonly masses: readonly RowMasses[] | undefined;
  /** Indices of items whose K/V is not finite: the weights have diverged. Their rows are zeroed, to harm no one else. */
  readonly broken: readonly number[];
}

/**
 * What a run costs in microseconds, roughly: attention is padded to the most new tokens [T] and the longest
 * context [L] of its items, everything else is paid by the token.
 */
export interface RunCost {
  /** Of a run with nothing in it. */
  readonly perRun: number;
  /** Of gathering one context row. */
  readonly perContextRow: number;
  /** Of one query attending to one row. */
  readonly perAttention: number;
  /** Of computing one token beside attention, until it is measured; unknown = as good as nothing. */
  readonly perToken?: number;
  /** Most context rows in one run: beyond, what a layer brings together falls out of the processor's cache. */
  readonly maxContextRows: number;
  /** Most new tokens in one run, for the same reason. @default as many as there are */
  readonly maxNewTokens?: number;
}

export interface PolicyRunner {
  readonly limits: PolicyLimits;
  /** Pages of the K/V pool, page 0 included, which stays zero. */
  readonly pageCapacity: number;
  /** What its runs cost, where they differ from those that the engine assumes. */
  readonly runCost?: RunCost;
  /** Computes all items in one go. No item may need a row that another item of the same call computes. */
  run(items: readonly RunItem[]): Promise<RunOutput>;
  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void;
  dispose(): Promise<void>;
}
