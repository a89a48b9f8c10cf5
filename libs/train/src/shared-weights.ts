/** Weights in memory that threads share: an update in place is seen by all of them. */
import type { Weights } from "@hone/nn";

/** Room for values in shared memory. */
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
