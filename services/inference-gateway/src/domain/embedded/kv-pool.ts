/**
 * The buffers that hold keys and values of all sequences of one policy version: per layer two arrays [G, P, D] (G
 * key/value heads, P rows, D head size). onnxruntime reads them in place; rows are written between runs.
 *
 * Row 0 stays zero. The arrays grow as rows are first used, by doubling, up to the capacity.
 */

import type { ModelSpec } from "@hone/nn";

/** Rows before the first growth. */
const INITIAL_ROWS = 1024;

export class KvPool {
  readonly capacity: number;
  readonly keys: Float32Array[];
  readonly values: Float32Array[];
  #rows: number;
  readonly #groups: number;
  readonly #headDim: number;

  constructor(spec: ModelSpec, capacity: number) {
    this.capacity = capacity;
    this.#groups = spec.numKeyValueHeads;
    this.#headDim = spec.headDim;
    this.#rows = Math.min(INITIAL_ROWS, capacity);
    const buffers = () =>
      Array.from({ length: spec.numLayers }, () => new Float32Array(this.#size(this.#rows)));
    this.keys = buffers();
    this.values = buffers();
  }

  /** Rows that the arrays have now. */
  get rows(): number {
    return this.#rows;
  }

  /** Shape of each array. */
  get shape(): readonly [number, number, number] {
    return [this.#groups, this.#rows, this.#headDim];
  }

  /** Makes sure that rows below `needed` exist. */
  reserve(needed: number): void {
    if (needed <= this.#rows) return;
    let rows = this.#rows;
    while (rows < needed) rows *= 2;
    rows = Math.min(rows, this.capacity);
    for (const buffers of [this.keys, this.values]) {
      for (let layer = 0; layer < buffers.length; layer++) {
        buffers[layer] = this.#grown(buffers[layer]!, rows);
      }
    }
    this.#rows = rows;
  }

  /**
   * Writes new rows.
   * @param fresh [N, 2*layers*G*D]: per token the keys of layer 0, 1, ..., then the values.
   * @param token which of the N.
   */
  write(row: number, fresh: Float32Array, token: number): void {
    const width = this.#headDim;
    const stride = this.#rows * width;
    let from = token * (this.keys.length * 2 * this.#groups * width);
    for (const buffers of [this.keys, this.values]) {
      for (const buffer of buffers) {
        for (let group = 0, to = row * width; group < this.#groups; group++, to += stride) {
          for (let i = 0; i < width; i++) buffer[to + i] = fresh[from++]!;
        }
      }
    }
  }

  #size(rows: number): number {
    return this.#groups * rows * this.#headDim;
  }

  /** The array moves head by head, since a longer pool sets the heads further apart. */
  #grown(buffer: Float32Array, rows: number): Float32Array {
    const larger = new Float32Array(this.#size(rows));
    const before = this.#rows * this.#headDim;
    for (let group = 0; group < this.#groups; group++) {
      larger.set(buffer.subarray(group * before, (group + 1) * before), group * rows * this.#headDim);
    }
    return larger;
  }
}

/** How many tokens' keys and values fit into some memory, over all layers. */
export function contextRowsIn(spec: ModelSpec, bytes: number): number {
  const bytesPerRow =
    spec.numLayers * 2 * spec.numKeyValueHeads * spec.headDim * Float32Array.BYTES_PER_ELEMENT;
  return Math.floor(bytes / bytesPerRow);
}
