/** The global norm of gradients, and the factor that clips it. */

/** Added to the norm before dividing, as PyTorch's `clip_grad_norm_` does. */
const NORM_EPSILON = 1e-6;

/**
 * Euclidean norm over all values of all gradients together: summed in float64, in the order given, so that the same
 * gradients give the same bits.
 */
export function globalNorm(gradients: Iterable<Float32Array>): number {
  let sum = 0;
  for (const gradient of gradients) {
    for (let i = 0; i < gradient.length; i++) sum += gradient[i]! * gradient[i]!;
  }
  return Math.sqrt(sum);
}

/** Factor that brings a norm down to `maxNorm`; 1 where it is below already. */
export function clipFactor(norm: number, maxNorm: number): number {
  return Math.min(1, maxNorm / (norm + NORM_EPSILON));
}
