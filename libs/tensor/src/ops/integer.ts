/**
 * Products of eight-bit numbers.
 *
 * Letters: M rows, K the summed axis, N columns, `...` batch axes.
 *
 * Sums of integers have no order, so a row of a product is the same whatever other rows are computed with it.
 */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkAxis, formatShape, sameShape } from "../shape.ts";
import { checkMatMulShape } from "./linalg.ts";

/**
 * round(x / scale) + zeroPoint, saturated to the type of the zero point; halves are rounded to even.
 *
 * @param scale one number, or one for each index of `axis`.
 * @param zeroPoint uint8 or int8, in the shape of the scale.
 */
export function QuantizeLinear(x: Tensor, scale: Tensor, zeroPoint: Tensor, axis: number): Tensor {
  const at = checkAxis("QuantizeLinear", axis, x.shape.length);
  const isFitting = scale.shape.length === 0 || sameShape(scale.shape, [x.shape[at]!]);
  if (!isFitting || !sameShape(scale.shape, zeroPoint.shape) || scale.dtype !== x.dtype) {
    const rule = `scale and zero point of ${formatShape(x.shape)} must be single numbers or have the size of axis ${at}`;
    const found = `${scale.dtype}${formatShape(scale.shape)} and ${formatShape(zeroPoint.shape)}`;
    throw new ShapeError("QuantizeLinear", `${rule}, but are ${found}`);
  }
  const { dtype } = zeroPoint;
  if (dtype !== "uint8" && dtype !== "int8")
    throw new ShapeError("QuantizeLinear", `the zero point must be uint8 or int8, but is ${dtype}`);
  return x.graph.emit("QuantizeLinear", [x, scale, zeroPoint], { axis: at }, [{ dtype, shape: x.shape }])
    .outputs[0]!;
}

/** A matrix of eight-bit numbers q, which stands for scale * (q - zeroPoint). */
export interface Quantized {
  readonly values: Tensor;
  /** float32: one number, or for a right operand one for each column. */
  readonly scale: Tensor;
  /** Of the type of the values: one number. */
  readonly zeroPoint: Tensor;
}

/** The product of what two quantized matrices stand for, a[..., M, K] x b[K, N] -> float32 [..., M, N]; a is uint8. */
export function MatMulIntegerToFloat(a: Quantized, b: Quantized): Tensor {
  const shape = checkMatMulShape(
    "MatMulIntegerToFloat",
    { ...a.values, dtype: b.values.dtype },
    b.values,
    false,
    false,
  );
  const isScaled = b.scale.shape.length === 0 || sameShape(b.scale.shape, b.values.shape.slice(-1));
  if (!isScaled || b.values.shape.length !== 2 || a.scale.shape.length !== 0 || a.values.dtype !== "uint8") {
    const rule =
      "the left operand must be uint8 with one scale, the right one a matrix with one scale or one for each column";
    const found = `${a.values.dtype}${formatShape(a.values.shape)} scaled by ${formatShape(a.scale.shape)} and ${formatShape(b.values.shape)} scaled by ${formatShape(b.scale.shape)}`;
    throw new ShapeError("MatMulIntegerToFloat", `${rule}, but they are ${found}`);
  }
  const inputs = [a.values, b.values, a.scale, b.scale, a.zeroPoint, b.zeroPoint];
  return a.values.graph.emit("MatMulIntegerToFloat", inputs, {}, [{ dtype: "float32", shape }]).outputs[0]!;
}
