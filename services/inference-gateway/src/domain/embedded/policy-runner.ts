/**
 * What the engine core asks of the weights of one policy version: compute tokens, keep their K/V, give logits.
 * The ONNX session stands behind it; the core knows rows and tokens only.
 */

/** Consecutive tokens of one sequence to compute: `tokens[start, start + count)`. */
export interface RunItem {
  /** The sequence so far. */
  readonly tokens: Int32Array;
  /** Pool row of each token; `rows[0, start)` hold K/V already, `rows[start, start + count)` receive it. */
  readonly rows: Int32Array;
  readonly start: number;
  readonly count: number;
  /** Whether the logits after the last of these tokens are wanted. */
  readonly wantsLogits: boolean;
}

/** Limits that the weights set. */
export interface PolicyLimits {
  readonly vocabularySize: number;
  /** Longest sequence, prompt and new tokens together. */
  readonly maxContextTokens: number;
}

export interface PolicyRunner {
  readonly limits: PolicyLimits;
  /** Rows of the K/V pool, row 0 included, which stays zero. */
  readonly rowCapacity: number;
  /**
   * Computes all items in one go. No item may need a row that another item of the same call computes.
   * @returns the logits rows [S, V] of the items that want them, in their order; valid until the next call.
   */
  run(items: readonly RunItem[]): Promise<Float32Array>;
  dispose(): Promise<void>;
}
