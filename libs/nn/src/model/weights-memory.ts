/** Memory for weights: it is shared between threads, so that all of them see updates in place, and it can be freed at once. */
import type { TensorData } from "@hone/tensor";
import type { Weights } from "./parameters.ts";

/** Allocates an array of values in shared memory. */
export function allocateShared(values: number): Float32Array {
  return new Float32Array(new SharedArrayBuffer(values * Float32Array.BYTES_PER_ELEMENT));
}

/** A copy of the weights in shared memory. */
export function shareWeights(weights: Weights): Record<string, Float32Array> {
  return Object.fromEntries(
    Object.entries(weights).map(([name, values]) => {
      const shared = allocateShared(values.length);
      shared.set(values);
      return [name, shared];
    }),
  );
}

/** Frees the memory of unused values at once: gradients and weights are large, and garbage collection may come late. */
export function releaseValues(values: Readonly<Record<string, TensorData>>): void {
  const buffers = new Set(Object.values(values).map(({ buffer }) => buffer));
  for (const buffer of buffers) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
