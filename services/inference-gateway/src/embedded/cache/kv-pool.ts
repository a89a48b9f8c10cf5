/**
 * The buffers that hold keys and values of all sequences of one policy version of a small model: per layer two arrays [G, P, A, D] (G
 * key/value heads, P pages of A = PAGE_ROWS rows, D head size). onnxruntime reads them in place; rows are written
 * between runs.
 *
 * Page 0 stays zero. The arrays have their full length from the start, but only the parts that are written to take memory. Their
 * values are always finite, as masked rows are multiplied by 0, which would turn infinities into NaN.
 */

import { type ModelSpec, PAGE_ROWS } from "@hone/nn";
import { copyRows, free, isAllFinite } from "./kv-rows.ts";

export class KvPool {
  /** In pages. */
  readonly capacity: number;
  readonly keys: Float32Array[];
  readonly values: Float32Array[];
  readonly #groups: number;
  readonly #headDim: number;

  constructor(spec: ModelSpec, capacity: number) {
    this.capacity = capacity;
    this.#groups = spec.numKeyValueHeads;
    this.#headDim = spec.headDim;
    const buffers = () =>
      Array.from({ length: spec.numLayers }, () => new Float32Array(this.#groups * this.#stride));
    this.keys = buffers();
    this.values = buffers();
  }

  /** Shape of each array as the graph reads it: [G, P, A*D]. */
  get shape(): readonly [number, number, number] {
    return [this.#groups, this.capacity, PAGE_ROWS * this.#headDim];
  }

  /**
   * Writes rows of consecutive positions in one page; all as zeros where one is not finite.
   * @param fresh [N, 2*layers*G*D]: per token the keys of layer 0, 1, ..., then the values.
   * @param token which of the N is the first one.
   * @returns whether they were finite.
   */
  write(page: number, position: number, fresh: Float32Array, token: number, count: number): boolean {
    const width = this.#headDim;
    const stride = this.#stride;
    const row = (page * PAGE_ROWS + (position % PAGE_ROWS)) * width;
    const size = this.keys.length * 2 * this.#groups * width;
    let from = token * size;
    const isSound = isAllFinite(fresh, from, from + count * size);
    for (const buffers of [this.keys, this.values]) {
      for (const buffer of buffers) {
        // Head by head, as the rows of one head are adjacent, and those of two heads are in different pages of memory.
        for (let group = 0, to = row; group < this.#groups; group++, to += stride, from += width) {
          if (isSound) copyRows(fresh, from, size, buffer, to, width, count);
          else buffer.fill(0, to, to + count * width);
        }
      }
    }
    return isSound;
  }

  /** Copies the first `count` rows of a page. */
  copyRows(fromPage: number, toPage: number, count: number): void {
    const pageSize = PAGE_ROWS * this.#headDim;
    const [from, to] = [fromPage * pageSize, toPage * pageSize];
    const length = count * this.#headDim;
    this.#forEachHead((buffer, head) => buffer.copyWithin(head + to, head + from, head + from + length));
  }

  /** Copies a page of the pool of another version of the model. */
  copyPage(source: KvPool, fromPage: number, toPage: number): void {
    const pageSize = PAGE_ROWS * this.#headDim;
    for (const name of ["keys", "values"] as const) {
      for (const [layer, buffer] of this[name].entries()) {
        for (let group = 0; group < this.#groups; group++) {
          const from = group * source.#stride + fromPage * pageSize;
          const rows = source[name][layer]!.subarray(from, from + pageSize);
          buffer.set(rows, group * this.#stride + toPage * pageSize);
        }
      }
    }
  }

  /** Frees the memory at once; the garbage collector would keep the memory of a whole version for a while. */
  dispose(): void {
    for (const buffers of [this.keys, this.values]) for (const buffer of buffers.splice(0)) free(buffer);
  }

  #forEachHead(use: (buffer: Float32Array, head: number) => void): void {
    const stride = this.#stride;
    for (const buffers of [this.keys, this.values]) {
      for (const buffer of buffers)
        for (let group = 0; group < this.#groups; group++) use(buffer, group * stride);
    }
  }

  /** Elements of one head. */
  get #stride(): number {
    return this.capacity * PAGE_ROWS * this.#headDim;
  }
}
