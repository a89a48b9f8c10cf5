/**
 * Gradient rules of matrix products.
 *
 * For Y = alpha A B with gradient G: dA = alpha G B^T and dB = alpha A^T G; a transposed operand swaps the sides of
 * its product. A matrix that multiplies a whole batch gets its gradient from one product over all rows of the batch.
 */
import type { Tensor } from "../graph.ts";
import { FusedMatMul } from "../ops/linalg.ts";
import { Reshape } from "../ops/movement.ts";
import { type GradientRule, unbroadcast } from "./rule.ts";

interface Product {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly g: Tensor;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly alpha: number;
}

/** dA = G B^T, dB = A^T G */
export const matMulRule: GradientRule<"MatMul"> = ({ inputs, gradients }) => {
  const [a, b] = inputs as readonly [Tensor, Tensor];
  return differentiate({ a, b, g: gradients[0]!, transA: false, transB: false, alpha: 1 });
};

/** dA and dB as above, with the transposes and the factor of the product. */
export const fusedMatMulRule: GradientRule<"FusedMatMul"> = ({ node, inputs, gradients }) => {
  const [a, b] = inputs as readonly [Tensor, Tensor];
  const { transA, transB, alpha } = node.attributes;
  return differentiate({ a, b, g: gradients[0]!, transA: transA === 1, transB: transB === 1, alpha });
};

/** dA and dB likewise, dC = G */
export const gemmRule: GradientRule<"Gemm"> = ({ node, inputs, gradients }) => {
  const [a, b] = inputs as readonly [Tensor, Tensor, Tensor];
  const { transA, transB, alpha } = node.attributes;
  const g = gradients[0]!;
  return [...differentiate({ a, b, g, transA: transA === 1, transB: transB === 1, alpha }), g];
};

function differentiate(product: Product): [Tensor, Tensor] {
  const { a, b, g, transA, transB, alpha } = product;
  const da = transA
    ? FusedMatMul(b, g, { transA: transB, transB: true, alpha })
    : FusedMatMul(g, b, { transB: !transB, alpha });
  const isShared = b.shape.length === 2 && a.shape.length > 2 && !transA;
  const left = isShared ? flatten(a) : a;
  const right = isShared ? flatten(g) : g;
  const db = transB
    ? FusedMatMul(right, left, { transA: true, transB: transA, alpha })
    : FusedMatMul(left, right, { transA: !transA, alpha });
  return [unbroadcast(da, a), unbroadcast(db, b)];
}

/** [..., K] -> [all, K] */
function flatten(x: Tensor): Tensor {
  return Reshape(x, [-1, x.shape.at(-1)!]);
}
