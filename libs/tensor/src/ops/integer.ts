/**
 * Products of eight-bit numbers.
 *
 * Letters: M rows, K the summed axis, N columns, `...` batch axes.
 *
 * Sums of integers have no order, so a row of a product is the same whatever other rows are computed with it.
 */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkAxis, formatShape, sameShape, type TensorShape } from "../shape.ts";
import { checkMatMulShape } from "./linalg.ts";

/**
 * round(x / scale) + zeroPoint, saturated to the type of the zero point; halves are rounded to even.
 *
 * @param scale one number, or one for each index of `axis`.
 * @param zeroPoint uint8 or int8, in the shape of the scale.
 */
export function QuantizeLinear(x: Tensor, scale: Tensor, zeroPoint: Tensor, axis: number): Tensor {
  const at = checkScales("QuantizeLinear", x, scale, zeroPoint, axis);
  const { dtype } = zeroPoint;
  if (dtype !== "uint8" && dtype !== "int8")
    throw new ShapeError("QuantizeLinear", `the zero point must be uint8 or int8, but is ${dtype}`);
  return x.graph.emit("QuantizeLinear", [x, scale, zeroPoint], { axis: at }, [{ dtype, shape: x.shape }])
    .outputs[0]!;
}

/** The reverse of {@link QuantizeLinear}: (x - zeroPoint) * scale, for x of the type of the zero point. @returns float32 */
export function DequantizeLinear(x: Tensor, scale: Tensor, zeroPoint: Tensor, axis: number): Tensor {
  const at = checkScales("DequantizeLinear", x, scale, zeroPoint, axis);
  if (x.dtype !== zeroPoint.dtype)
    throw new ShapeError("DequantizeLinear", `the zero point must be ${x.dtype}, but is ${zeroPoint.dtype}`);
  const { shape } = x;
  return x.graph.emit("DequantizeLinear", [x, scale, zeroPoint], { axis: at }, [{ dtype: "float32", shape }])
    .outputs[0]!;
}

/** @returns the axis, counted from the first one. */
function checkScales(operator: string, x: Tensor, scale: Tensor, zeroPoint: Tensor, axis: number): number {
  const at = checkAxis(operator, axis, x.shape.length);
  const isFitting = scale.shape.length === 0 || sameShape(scale.shape, [x.shape[at]!]);
  if (!isFitting || !sameShape(scale.shape, zeroPoint.shape) || scale.dtype !== "float32") {
    const rule = `scale and zero point of ${formatShape(x.shape)} must be single numbers or have the size of axis ${at}`;
    const found = `${scale.dtype}${formatShape(scale.shape)} and ${formatShape(zeroPoint.shape)}`;
    throw new ShapeError(operator, `${rule}, but are ${found}`);
  }
  return at;
}

/** A tensor of eight-bit numbers q, which stands for scale * (q - zeroPoint). */
export interface Quantized {
  readonly values: Tensor;
  /** float32: one number, or for a right operand one for each column (MatMulIntegerToFloat). */
  readonly scale: Tensor;
  /** Of the type of the values: one number. */
  readonly zeroPoint: Tensor;
}

/**
 * The product of what two quantized tensors stand for, a[..., M, K] x b[..., K, N] -> float32 [..., M, N]; a is uint8.
 *
 * The scale of b is one number, one for each column [N], or one for each column of each of its matrices [..., 1, N].
 */
export function MatMulIntegerToFloat(a: Quantized, b: Quantized): Tensor {
  const shape = checkOperands("MatMulIntegerToFloat", a.values, b.values);
  const [batch, columns] = [b.values.shape.slice(0, -2), b.values.shape.slice(-1)];
  const scaleShapes = [[], columns, [...batch, 1, ...columns]];
  if (!scaleShapes.some((fitting) => sameShape(fitting, b.scale.shape)) || a.scale.shape.length !== 0) {
    const rule =
      "the left operand must have one scale, the right one a scale, one for each column, or one for each column of each matrix";
    const found = `${formatShape(a.values.shape)} scaled by ${formatShape(a.scale.shape)} and ${formatShape(b.values.shape)} scaled by ${formatShape(b.scale.shape)}`;
    throw new ShapeError("MatMulIntegerToFloat", `${rule}, but they are ${found}`);
  }
  const inputs = [a.values, b.values, a.scale, b.scale, a.zeroPoint, b.zeroPoint];
  return a.values.graph.emit("MatMulIntegerToFloat", inputs, {}, [{ dtype: "float32", shape }]).outputs[0]!;
}

/** The product of whole numbers a[..., M, K] x b[..., K, N] -> int32 [..., M, N], after each zero point is subtracted; a is uint8. */
export function MatMulInteger(a: Omit<Quantized, "scale">, b: Omit<Quantized, "scale">): Tensor {
  const shape = checkOperands("MatMulInteger", a.values, b.values);
  const inputs = [a.values, b.values, a.zeroPoint, b.zeroPoint];
  return a.values.graph.emit("MatMulInteger", inputs, {}, [{ dtype: "int32", shape }]).outputs[0]!;
}

/** @returns the shape of the product. */
function checkOperands(operator: string, a: Tensor, b: Tensor): TensorShape {
  if (a.dtype !== "uint8" || (b.dtype !== "uint8" && b.dtype !== "int8")) {
    const rule = "the left operand must be uint8, and the right one uint8 or int8";
    throw new ShapeError(operator, `${rule}, but they are ${a.dtype} and ${b.dtype}`);
  }
  return checkMatMulShape(operator, { ...a, dtype: b.dtype }, b, false, false);
}
