/** Gradient rules of primitives that combine several steps. */
import type { Tensor } from "../graph.ts";
import { Mul, Neg, Sub } from "../ops/elementwise.ts";
import { FusedMatMul } from "../ops/linalg.ts";
import { Reshape } from "../ops/movement.ts";
import { ReduceSum } from "../ops/reduce.ts";
import type { GradientRule } from "./rule.ts";

/**
 * RMS norm y = w x r with r = (mean(x^2) + epsilon)^(-1/2) over the last axis of size D, with s = g r x:
 *
 *   dw = sum over rows of s
 *   dx = r (g w) - x r^2 mean(s w)
 *
 * The mean of s w over D is computed as a matrix product of s with the column w.
 */
export const simplifiedLayerNormalizationRule: GradientRule<"SimplifiedLayerNormalization"> = ({
  inputs,
  outputs,
  gradients,
}) => {
  const [x, w] = inputs as readonly [Tensor, Tensor];
  const r = outputs[1]!;
  const gr = Mul(gradients[0]!, r);
  const s = Mul(gr, x);
  const size = Number(w.shape[0]);
  const mean = FusedMatMul(s, Reshape(w, [size, 1]), { alpha: 1 / size });
  const dx = Sub(Mul(gr, w), Mul(x, Mul(Mul(r, r), mean)));
  const dw = ReduceSum(Reshape(s, [-1, size]), { axes: [0], keepDims: false });
  return [dx, dw];
};

/** The transpose of a rotation is its inverse: dx = g rotated by the negative angles, which are constants. */
export const rotaryEmbeddingRule: GradientRule<"RotaryEmbedding"> = ({ node, inputs, gradients }) => {
  const [x, cosines, sines] = inputs as readonly [Tensor, Tensor, Tensor];
  const back = [gradients[0]!, cosines, Neg(sines)];
  return [x.graph.emit("RotaryEmbedding", back, node.attributes, [x]).outputs[0]!];
};
