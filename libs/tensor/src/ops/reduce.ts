/** Reductions and functions along an axis. Axes may count from the end. */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkAxis, type TensorShape } from "../shape.ts";

export interface ReduceOptions {
  /** Axes to reduce; all by default. */
  readonly axes?: readonly number[];
  /** Whether the reduced axes are kept with size 1 (default true, as in ONNX). */
  readonly keepDims?: boolean;
}

/** Sum over axes. */
export const ReduceSum = (x: Tensor, options: ReduceOptions = {}): Tensor => reduce("ReduceSum", x, options);
/** Mean over axes. */
export const ReduceMean = (x: Tensor, options: ReduceOptions = {}): Tensor =>
  reduce("ReduceMean", x, options);
/** Maximum over axes. */
export const ReduceMax = (x: Tensor, options: ReduceOptions = {}): Tensor => reduce("ReduceMax", x, options);

/** e^x / sum(e^x) along the last axis or `axis`. */
export const Softmax = (x: Tensor, axis = -1): Tensor => alongAxis("Softmax", x, axis);
/** Logarithm of the softmax. */
export const LogSoftmax = (x: Tensor, axis = -1): Tensor => alongAxis("LogSoftmax", x, axis);

/** Cumulative sums along an axis; each includes its own element. */
export function CumSum(x: Tensor, axis: number): Tensor {
  const at = checkAxis("CumSum", axis, x.shape.length);
  return x.graph.emit("CumSum", [x, x.graph.scalar("int64", at)], {}, [x]).outputs[0]!;
}

function reduce(primitive: "ReduceSum" | "ReduceMean" | "ReduceMax", x: Tensor, options: ReduceOptions) {
  const rank = x.shape.length;
  const given = options.axes ?? x.shape.map((_, axis) => axis);
  const axes = given.map((axis) => checkAxis(primitive, axis, rank));
  if (axes.length === 0 || new Set(axes).size !== axes.length) {
    const found = `[${given.join(", ")}]`;
    throw new ShapeError(primitive, `the axes must be distinct, and at least one, but are ${found}`);
  }
  const keepDims = options.keepDims ?? true;
  const shape = reducedShape(x.shape, axes, keepDims);
  const inputs = [x, x.graph.constant("int64", axes)];
  const attributes = { keepdims: keepDims ? 1 : 0 };
  return x.graph.emit(primitive, inputs, attributes, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

function reducedShape(shape: TensorShape, axes: readonly number[], keepDims: boolean): TensorShape {
  return shape.flatMap((dim, axis) => (axes.includes(axis) ? (keepDims ? [1] : []) : [dim]));
}

function alongAxis(primitive: "Softmax" | "LogSoftmax", x: Tensor, axis: number): Tensor {
  const at = checkAxis(primitive, axis, x.shape.length);
  return x.graph.emit(primitive, [x], { axis: at }, [x]).outputs[0]!;
}
