/** Weights in memory that threads share: an update in place is seen by all of them. */
import type { Weights } from "@hone/nn";

/** A copy of the weights in shared memory. */
export function shareWeights(weights: Weights): Record<string, Float32Array> {
  return Object.fromEntries(
    Object.entries(weights).map(([name, values]) => {
      const shared = new Float32Array(new SharedArrayBuffer(values.byteLength));
      shared.set(values);
      return [name, shared];
    }),
  );
}
