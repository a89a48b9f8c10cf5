/** Sums of squares for the global norm of gradients, and the factor that clips it. */

/** Added to the norm before dividing, as PyTorch's `clip_grad_norm_` does. */
const NORM_EPSILON = 1e-6;

/** Sum of the squares in float64. Four separate sums are faster, because each addition must wait for the previous one of its sum. */
export function squareSum(values: Float32Array): number {
  const whole = values.length - (values.length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let i = 0; i < whole; i += 4) {
    a += values[i]! * values[i]!;
    b += values[i + 1]! * values[i + 1]!;
    c += values[i + 2]! * values[i + 2]!;
    d += values[i + 3]! * values[i + 3]!;
  }
  for (let i = whole; i < values.length; i++) a += values[i]! * values[i]!;
  return a + b + (c + d);
}

/** Factor that scales a norm down to `maxNorm`; 1 if the norm is already below it. */
export function clipFactor(norm: number, maxNorm: number): number {
  return Math.min(1, maxNorm / (norm + NORM_EPSILON));
}
