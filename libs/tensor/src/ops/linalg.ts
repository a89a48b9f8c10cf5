/**
 * Matrix products.
 *
 * Letters: M rows, K the summed axis, N columns, `...` batch axes that broadcast.
 */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkBroadcastShape, type Dim, formatShape, sameShape, type TensorShape } from "../shape.ts";

export interface FusedMatMulOptions {
  /** Whether the last two axes of `a` are [K, M]. */
  readonly transA?: boolean;
  /** Whether the last two axes of `b` are [N, K]. */
  readonly transB?: boolean;
  /** Factor of the result, 1 by default. */
  readonly alpha?: number;
}

/** a[..., M, K] x b[..., K, N] -> [..., M, N] */
export function MatMul(a: Tensor, b: Tensor): Tensor {
  const shape = checkMatMulShape("MatMul", a, b, false, false);
  return a.graph.emit("MatMul", [a, b], {}, [{ dtype: a.dtype, shape }]).outputs[0]!;
}

/**
 * alpha * op(a) x op(b), where op transposes the last two axes if its option is set, without a transposed tensor in the
 * graph. With `transA`, both operands must be matrices or have equal batch axes.
 */
export function FusedMatMul(a: Tensor, b: Tensor, options: FusedMatMulOptions = {}): Tensor {
  const { transA = false, transB = false, alpha = 1 } = options;
  if (!transA && !transB && alpha === 1) return MatMul(a, b);
  const shape = checkMatMulShape("FusedMatMul", a, b, transA, transB);
  const attributes = { transA: transA ? 1 : 0, transB: transB ? 1 : 0, alpha };
  return a.graph.emit("FusedMatMul", [a, b], attributes, [{ dtype: a.dtype, shape }]).outputs[0]!;
}

/** alpha * op(a) x op(b) + c for matrices, where op transposes if its option is set; c has the shape of the result. */
export function Gemm(a: Tensor, b: Tensor, c: Tensor, options: FusedMatMulOptions = {}): Tensor {
  const { transA = false, transB = false, alpha = 1 } = options;
  const shape = checkMatMulShape("Gemm", a, b, transA, transB);
  if (shape.length !== 2 || !sameShape(shape, c.shape) || c.dtype !== a.dtype) {
    const product = `${a.dtype}${formatShape(shape)}`;
    const added = `${c.dtype}${formatShape(c.shape)}`;
    throw new ShapeError("Gemm", `the product is ${product}, so ${added} cannot be added to it`);
  }
  const attributes = { transA: transA ? 1 : 0, transB: transB ? 1 : 0, alpha };
  return a.graph.emit("Gemm", [a, b, c], attributes, [{ dtype: a.dtype, shape }]).outputs[0]!;
}

/** Validates the operands of a product and returns the shape of its result. */
export function checkMatMulShape(
  operator: string,
  a: Tensor,
  b: Tensor,
  transA: boolean,
  transB: boolean,
): TensorShape {
  const found = `${formatShape(a.shape)}${transA ? "^T" : ""} x ${formatShape(b.shape)}${transB ? "^T" : ""}`;
  if (a.dtype !== b.dtype) {
    throw new ShapeError(operator, `the operands must have the same type, but are ${a.dtype} and ${b.dtype}`);
  }
  if (a.shape.length < 2 || b.shape.length < 2) {
    throw new ShapeError(operator, `the operands must have at least two axes, but the product is ${found}`);
  }
  const [m, k] = lastTwo(a.shape, transA);
  const [kOfB, n] = lastTwo(b.shape, transB);
  if (k !== kOfB) {
    throw new ShapeError(operator, `the summed axes must have the same size, but the product is ${found}`);
  }
  return [...checkBroadcastShape(operator, a.shape.slice(0, -2), b.shape.slice(0, -2)), m, n];
}

function lastTwo(shape: TensorShape, transposed: boolean): readonly [Dim, Dim] {
  const rows = shape.at(-2)!;
  const columns = shape.at(-1)!;
  return transposed ? [columns, rows] : [rows, columns];
}
