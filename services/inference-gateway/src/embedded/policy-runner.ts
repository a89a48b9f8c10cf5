/**
 * The engine core's interface to the weights of one policy version: it computes tokens, keeps their K/V and returns logits.
 * The ONNX session is behind it; the core knows only rows and tokens.
 */

import type { RowMasses } from "../domain/sampling/sampling-row.ts";

/** Consecutive tokens of one sequence to compute: `tokens[start, start + count)`. */
export interface RunItem {
  /** The sequence so far. */
  readonly tokenIds: Int32Array;
  /** Pool page of every PAGE_ROWS positions. Rows before `start` have their K/V; the run writes that of the next `count`. */
  readonly pages: Int32Array;
  readonly start: number;
  readonly count: number;
  /** Whether the logits after the last of these tokens are wanted. */
  readonly wantsLogits: boolean;
  /** Temperature of the next token; 1 by default. */
  readonly temperature?: number;
  /** Random number in [0, 1) for the next token; 0 by default. */
  readonly uniform?: number;
  /** Whether one block of the logits is enough, as the next token is drawn from the whole vocabulary. */
  readonly isFromAll?: boolean;
}

/** Limits that the weights set. */
export interface PolicyLimits {
  readonly vocabularySize: number;
  /** Longest sequence, prompt and new tokens together. */
  readonly maxContextTokens: number;
}

/** The results of a run. */
export interface RunOutput {
  /** Rows [S, V] of the items that need logits, in their order; valid until the next run. Absent if no item needs all of them. */
  readonly logits: Float32Array | undefined;
  /** Sums over each of these rows, if the vocabulary is large. */
  readonly masses: readonly RowMasses[] | undefined;
  /** Indices of items whose K/V is not finite: the weights have diverged. Their rows are set to zero, so that they cannot affect other sequences. */
  readonly broken: readonly number[];
}

/**
 * The approximate cost of a run in microseconds. Attention is padded to the most new tokens [T] and the longest
 * context [L] of its items; everything else costs the same for each token.
 */
export interface RunCost {
  /** Cost of an empty run. */
  readonly perRun: number;
  /** Cost of gathering one context row. */
  readonly perContextRow: number;
  /** Cost of the attention of one query to one row. */
  readonly perAttention: number;
  /** Cost of one token without attention, until it is measured; undefined = almost nothing. */
  readonly perToken?: number;
  /** Most context rows in one run; with more, the rows of a layer do not fit in the processor's cache. */
  readonly maxContextRows: number;
  /** Most new tokens in one run, for the same reason. @default no limit */
  readonly maxNewTokens?: number;
  /** Steps for which the sequences of one decoding run are computed before those of another one. @default 1: all in each step */
  readonly turnSteps?: number;
  /** Whether the sums of attention have no order, so that contexts are hardly padded. @default false */
  readonly isExact?: boolean;
}

export interface PolicyRunner {
  readonly limits: PolicyLimits;
  /** Pages of the K/V pool, with page 0, which stays zero. */
  readonly pageCapacity: number;
  /** The cost of its runs, if it is not the one that the engine assumes. */
  readonly runCost?: RunCost;
  /** Computes all items in one run. No item may need a row that another item of the same call computes. */
  run(items: readonly RunItem[]): Promise<RunOutput>;
  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void;
  /** Copies pages of another version's runner of the same model: page `from[i]` of `source` to page `to[i]` of this one. */
  copyPages(source: PolicyRunner, from: Int32Array, to: Int32Array): void;
  dispose(): Promise<void>;
}
