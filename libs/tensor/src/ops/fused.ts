/** Operators that onnxruntime computes in one pass. */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { formatShape, sameShape } from "../shape.ts";

/** RMS norm over the last axis D: y = weight * x / sqrt(mean(x^2) + epsilon); x [..., D], weight [D]. */
export function SimplifiedLayerNormalization(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  if (!sameShape(weight.shape, x.shape.slice(-1))) {
    const rule = `the weight must have the size of the last axis of ${formatShape(x.shape)}`;
    const problem = `${rule}, but has the shape ${formatShape(weight.shape)}`;
    throw new ShapeError("SimplifiedLayerNormalization", problem);
  }
  const inverse = { dtype: x.dtype, shape: [...x.shape.slice(0, -1), 1] };
  // The gradient needs the second result, 1 / sqrt(mean(x^2) + epsilon).
  const attributes = { axis: -1, epsilon, stash_type: 1 };
  return x.graph.emit("SimplifiedLayerNormalization", [x, weight], attributes, [x, inverse]).outputs[0]!;
}

/** x * sigmoid(alpha * x); alpha 1 is SiLU. */
export function QuickGelu(x: Tensor, alpha = 1): Tensor {
  return x.graph.emit("QuickGelu", [x], { alpha }, [x]).outputs[0]!;
}

/**
 * Rotary position embedding in the half-split layout (RoFormer, https://arxiv.org/abs/2104.09864, as in GPT-NeoX and
 * Qwen3): within each head of size D the pair (i, i + D/2) is rotated by its angle.
 *
 * x [B, T, heads*D]; cosines and sines [B, T, D/2], one row per token.
 */
export function RotaryEmbedding(x: Tensor, cosines: Tensor, sines: Tensor, numHeads: number): Tensor {
  const half = Number(x.shape[2]) / numHeads / 2;
  const angles = [x.shape[0]!, x.shape[1]!, half];
  const isFitting =
    x.shape.length === 3 &&
    Number.isInteger(half) &&
    sameShape(cosines.shape, angles) &&
    sameShape(sines.shape, angles);
  if (!isFitting) {
    const found = `${[x, cosines, sines].map((t) => formatShape(t.shape)).join(", ")} with ${numHeads} heads`;
    const rule = "the inputs must have the shapes [B,T,heads*D], [B,T,D/2] and [B,T,D/2]";
    throw new ShapeError("RotaryEmbedding", `${rule}, but have ${found}`);
  }
  const attributes = { num_heads: numHeads };
  return x.graph.emit("RotaryEmbedding", [x, cosines, sines], attributes, [x]).outputs[0]!;
}
