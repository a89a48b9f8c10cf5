/**
 * Gradient rules of matrix products.
 *
 * For Y = alpha A B with gradient G: dA = alpha G B^T and dB = alpha A^T G. For a transposed operand, the two factors of its
 * gradient are swapped. If one matrix multiplies a whole batch, one product over all rows of the batch gives its gradient.
 */
import type { Tensor } from "../graph.ts";
import { FusedMatMul } from "../ops/linalg.ts";
import { Reshape, Transpose } from "../ops/movement.ts";
import { type GradientRule, unbroadcast } from "./rule.ts";

/** Results up to this width count as narrow; heads are 64 to 128 wide. */
const NARROW_WIDTH = 128;

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
    ? turnedProduct(right, left, transA, alpha)
    : transA
      ? FusedMatMul(left, right, { alpha })
      : turnedProduct(left, right, false, alpha);
  return [unbroadcast(da, a), unbroadcast(db, b)];
}

/**
 * alpha x^T op(y). onnxruntime copies a matrix to transpose it. For a batch with a narrow result, such as the gradients of
 * keys and values, the smaller y is therefore transposed instead of x, and afterwards the result.
 */
function turnedProduct(x: Tensor, y: Tensor, transY: boolean, alpha: number): Tensor {
  const width = y.shape.at(transY ? -2 : -1)!;
  const isNarrow = typeof width === "number" && width <= NARROW_WIDTH;
  if (transY || !isNarrow || x.shape.length < 3 || x.shape.length !== y.shape.length) {
    return FusedMatMul(x, y, { transA: true, transB: transY, alpha });
  }
  const last = x.shape.length - 1;
  const swapped = x.shape.map((_, axis) => (axis === last ? last - 1 : axis === last - 1 ? last : axis));
  return Transpose(FusedMatMul(y, x, { transA: true, alpha }), swapped);
}

/** [..., K] -> [all, K] */
function flatten(x: Tensor): Tensor {
  return Reshape(x, [-1, x.shape.at(-1)!]);
}
