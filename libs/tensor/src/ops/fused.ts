/** Operators that onnxruntime computes in one pass. */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { formatShape, sameShape } from "../shape.ts";

/** RMS norm over the last axis D: y = weight * x / sqrt(mean(x^2) + epsilon); x [..., D], weight [D]. */
export function SimplifiedLayerNormalization(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  if (!sameShape(weight.shape, x.shape.slice(-1))) {
    const current = `${formatShape(weight.shape)} for ${formatShape(x.shape)}`;
    throw new ShapeError("SimplifiedLayerNormalization", "its weight covers the last axis", current);
  }
  const inverse = { dtype: x.dtype, shape: [...x.shape.slice(0, -1), 1] };
  // The second result, 1 / sqrt(mean(x^2) + epsilon), is what the gradient needs.
  const attributes = { axis: -1, epsilon, stash_type: 1 };
  return x.graph.emit("SimplifiedLayerNormalization", [x, weight], attributes, [x, inverse]).outputs[0]!;
}

/** x * sigmoid(alpha * x); alpha 1 is SiLU. */
export function QuickGelu(x: Tensor, alpha = 1): Tensor {
  return x.graph.emit("QuickGelu", [x], { alpha }, [x]).outputs[0]!;
}

/**
 * Rotary position embedding in the half-split layout: the pair (i, i + D/2) is turned by angle[position, i].
 *
 * x [B, H, T, D]; positions int64 [B, T]; cosines and sines [P, D/2] hold the angles of every position below P.
 */
export function RotaryEmbedding(x: Tensor, positions: Tensor, cosines: Tensor, sines: Tensor): Tensor {
  const half = Number(x.shape[3]) / 2;
  const isFitting =
    x.shape.length === 4 &&
    sameShape(positions.shape, [x.shape[0]!, x.shape[2]!]) &&
    sameShape(cosines.shape, sines.shape) &&
    cosines.shape[1] === half;
  if (!isFitting || positions.dtype !== "int64") {
    const current = [x, positions, cosines, sines].map((t) => formatShape(t.shape)).join(", ");
    throw new ShapeError("RotaryEmbedding", "it gets [B,H,T,D], [B,T], [P,D/2], [P,D/2]", current);
  }
  const inputs = [x, positions, cosines, sines];
  return x.graph.emit("RotaryEmbedding", inputs, { interleaved: 0 }, [x]).outputs[0]!;
}
