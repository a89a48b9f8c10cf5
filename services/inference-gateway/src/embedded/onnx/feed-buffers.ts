import type { DType, Feed, TensorData } from "@hone/tensor";

/** The inputs of a run by name. Memory for indices is kept and viewed in the size of each run. */
export class FeedBuffers {
  readonly feeds: Record<string, Feed> = {};
  readonly #memory = new Map<string, ArrayBuffer>();

  indices(name: string, shape: readonly number[]): Int32Array {
    const data = new Int32Array(this.#reserve(name, shape), 0, sizeOf(shape));
    this.feeds[name] = { dtype: "int32", data, shape };
    return data;
  }

  floats(name: string, shape: readonly number[]): Float32Array {
    const data = new Float32Array(this.#reserve(name, shape), 0, sizeOf(shape));
    this.give(name, "float32", data, shape);
    return data;
  }

  /** Adds an array of the caller as an input. */
  give(name: string, dtype: DType, data: TensorData, shape: readonly number[]): void {
    this.feeds[name] = { dtype, data, shape };
  }

  #reserve(name: string, shape: readonly number[]): ArrayBuffer {
    const bytes = 4 * sizeOf(shape);
    let memory = this.#memory.get(name);
    if (memory === undefined || memory.byteLength < bytes) {
      memory = new ArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(bytes, 64))));
      this.#memory.set(name, memory);
    }
    return memory;
  }
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
