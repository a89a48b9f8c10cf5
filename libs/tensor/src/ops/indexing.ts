/** Reading and writing by index. Indices are int64 (or int32 for Gather) and lie inside the axis. */
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { checkAxis, formatShape, sameShape } from "../shape.ts";

/** Slices of `x` along an axis: the result has the axes of `indices` in place of `axis`. */
export function Gather(x: Tensor, indices: Tensor, axis = 0): Tensor {
  requireIndex("Gather", indices);
  const at = checkAxis("Gather", axis, x.shape.length);
  const shape = [...x.shape.slice(0, at), ...indices.shape, ...x.shape.slice(at + 1)];
  return x.graph.emit("Gather", [x, indices], { axis: at }, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** result[i][j] = x[i][indices[i][j]] for the last of two axes, likewise for other ranks and axes. */
export function GatherElements(x: Tensor, indices: Tensor, axis: number): Tensor {
  requireIndex("GatherElements", indices);
  const at = checkAxis("GatherElements", axis, x.shape.length);
  const agrees = indices.shape.every((dim, i) => i === at || dim === x.shape[i]);
  if (indices.shape.length !== x.shape.length || !agrees) {
    const current = `${formatShape(x.shape)} and ${formatShape(indices.shape)}`;
    throw new ShapeError("GatherElements", `data and indices agree but for axis ${at}`, current);
  }
  const type = { dtype: x.dtype, shape: indices.shape };
  return x.graph.emit("GatherElements", [x, indices], { axis: at }, [type]).outputs[0]!;
}

/** A copy of `x` with x[i][indices[i][j]] += updates[i][j], likewise for other ranks and axes. */
export function ScatterElementsAdd(x: Tensor, indices: Tensor, updates: Tensor, axis: number): Tensor {
  requireIndex("ScatterElements", indices);
  const at = checkAxis("ScatterElements", axis, x.shape.length);
  if (!sameShape(indices.shape, updates.shape) || indices.shape.length !== x.shape.length) {
    const current = `${formatShape(x.shape)}, ${formatShape(indices.shape)}, ${formatShape(updates.shape)}`;
    throw new ShapeError("ScatterElements", "indices and updates have one shape of the data's rank", current);
  }
  const inputs = [x, indices, updates];
  return x.graph.emit("ScatterElements", inputs, { axis: at, reduction: "add" }, [x]).outputs[0]!;
}

/** A copy of `x` [V, ...] with x[indices[i, 0]] += updates[i] for indices [N, 1] and updates [N, ...]. */
export function ScatterNDAdd(x: Tensor, indices: Tensor, updates: Tensor): Tensor {
  requireIndex("ScatterND", indices);
  const isFitting =
    indices.shape.length === 2 &&
    indices.shape[1] === 1 &&
    sameShape(updates.shape, [indices.shape[0]!, ...x.shape.slice(1)]);
  if (!isFitting || updates.dtype !== x.dtype) {
    const current = `${formatShape(x.shape)}, ${formatShape(indices.shape)}, ${formatShape(updates.shape)}`;
    throw new ShapeError("ScatterND", "indices are [N, 1] and updates [N, ...rest of the data]", current);
  }
  return x.graph.emit("ScatterND", [x, indices, updates], { reduction: "add" }, [x]).outputs[0]!;
}

function requireIndex(operator: string, indices: Tensor): void {
  if (indices.dtype !== "int64" && indices.dtype !== "int32") {
    throw new ShapeError(operator, "its indices are whole numbers", indices.dtype);
  }
}
