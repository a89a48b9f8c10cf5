/** Reading and writing by index. Indices are int64 (or int32 for Gather) and must be within the axis. */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkAxis, formatShape, sameShape } from "../shape.ts";

export interface GatherOptions {
  /**
   * Whether the caller guarantees that no index occurs twice (default false). The gradient can then simply write its values.
   * Otherwise it must add them, which onnxruntime does element by element on one thread to keep the order of the sums.
   */
  readonly isDistinct?: boolean;
}

/** Slices of `x` along an axis. In the result, the axes of `indices` replace `axis`. */
export function Gather(x: Tensor, indices: Tensor, axis = 0, options: GatherOptions = {}): Tensor {
  requireIndex("Gather", indices);
  const at = checkAxis("Gather", axis, x.shape.length);
  const shape = [...x.shape.slice(0, at), ...indices.shape, ...x.shape.slice(at + 1)];
  const attributes = { axis: at, isDistinct: options.isDistinct ?? false };
  return x.graph.emit("Gather", [x, indices], attributes, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** result[i][j] = x[i][indices[i][j]] for the last of two axes, likewise for other ranks and axes. */
export function GatherElements(x: Tensor, indices: Tensor, axis: number): Tensor {
  requireIndex("GatherElements", indices);
  const at = checkAxis("GatherElements", axis, x.shape.length);
  const agrees = indices.shape.every((dim, i) => i === at || dim === x.shape[i]);
  if (indices.shape.length !== x.shape.length || !agrees) {
    const found = `${formatShape(x.shape)} and ${formatShape(indices.shape)}`;
    const rule = `data and indices may differ only in the size of axis ${at}`;
    throw new ShapeError("GatherElements", `${rule}, but have the shapes ${found}`);
  }
  const type = { dtype: x.dtype, shape: indices.shape };
  return x.graph.emit("GatherElements", [x, indices], { axis: at }, [type]).outputs[0]!;
}

/**
 * A copy of `x` with x[i][indices[i][j]] = updates[i][j], or += with the reduction `add`; likewise for other ranks and
 * axes. Without reduction, the indices along the axis must be distinct.
 */
export function ScatterElements(
  x: Tensor,
  indices: Tensor,
  updates: Tensor,
  axis: number,
  reduction: "none" | "add" = "none",
): Tensor {
  requireIndex("ScatterElements", indices);
  const at = checkAxis("ScatterElements", axis, x.shape.length);
  if (!sameShape(indices.shape, updates.shape) || indices.shape.length !== x.shape.length) {
    const found = `${formatShape(x.shape)}, ${formatShape(indices.shape)} and ${formatShape(updates.shape)}`;
    const rule = "indices and updates must have the same shape, with as many axes as the data";
    throw new ShapeError("ScatterElements", `${rule}; data, indices and updates have ${found}`);
  }
  return x.graph.emit("ScatterElements", [x, indices, updates], { axis: at, reduction }, [x]).outputs[0]!;
}

/**
 * A copy of `x` with the slices x[indices[n]] = updates[n], or += with the reduction `add`. The last axis of `indices`
 * [..., K] addresses the first K axes of `x`; updates are [..., rest of x]. Without reduction, the addressed places must be
 * distinct.
 */
export function ScatterND(
  x: Tensor,
  indices: Tensor,
  updates: Tensor,
  reduction: "none" | "add" = "none",
): Tensor {
  const addressed = Number(indices.shape.at(-1));
  const expected = [...indices.shape.slice(0, -1), ...x.shape.slice(addressed)];
  const isFitting = addressed <= x.shape.length && sameShape(updates.shape, expected);
  if (!isFitting || indices.dtype !== "int64" || updates.dtype !== x.dtype) {
    const found = [x, indices, updates].map((each) => `${each.dtype}${formatShape(each.shape)}`).join(", ");
    const rule =
      "data, indices and updates must be [...], int64[..., K] and [..., axes of the data after the first K]";
    throw new ShapeError("ScatterND", `${rule}, but are ${found}`);
  }
  return x.graph.emit("ScatterND", [x, indices, updates], { reduction }, [x]).outputs[0]!;
}

function requireIndex(operator: string, indices: Tensor): void {
  if (indices.dtype !== "int64" && indices.dtype !== "int32") {
    throw new ShapeError(operator, `the indices must be int64 or int32, but are ${indices.dtype}`);
  }
}
