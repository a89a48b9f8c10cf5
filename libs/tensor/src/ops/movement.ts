/** Operators that move or view elements without computing. */
import { ShapeError } from "../errors.ts";
import type { Graph, Tensor } from "../graph.ts";
import {
  addDims,
  checkAxis,
  checkBroadcastShape,
  type Dim,
  divideDims,
  elementCount,
  formatShape,
  multiplyDims,
  sameShape,
  type TensorShape,
} from "../shape.ts";
import { Add, Cast, Mul } from "./elementwise.ts";

/**
 * The elements in another shape. One axis may be -1: its size follows from the others. If `x` is itself a reshape, its source
 * is reshaped instead, so that views of views cost nothing.
 *
 * @throws ShapeError if the element counts differ, or if more than one symbolic size would have to be determined at run time
 *   (a size that stays at its axis does not count).
 */
export function Reshape(x: Tensor, target: readonly Dim[]): Tensor {
  const shape = checkReshapeShape(x.shape, target);
  if (sameShape(shape, x.shape)) return x;
  const source = reshapedFrom(x);
  if (source !== undefined && movingSizes(source.shape, shape) <= 1) return Reshape(source, shape);
  const values = shape.map((dim, axis) => (typeof dim === "number" ? dim : dim === x.shape[axis] ? 0 : -1));
  if (movingSizes(x.shape, shape) > 1) {
    const change = `${formatShape(x.shape)} to ${formatShape(shape)}`;
    const problem = `more than one symbolic size would move to another axis in ${change}; use ReshapeLike`;
    throw new ShapeError("Reshape", problem);
  }
  return emitReshape(x, x.graph.constant("int64", values), shape);
}

/**
 * The source of a reshape, unless its shape is read at run time, because {@link After} uses such reshapes to wait, or its sizes have other
 * names ({@link ReshapeAssuming}).
 */
function reshapedFrom({ node, shape }: Tensor): Tensor | undefined {
  const [source, target] = node?.primitive === "Reshape" ? node.inputs : [];
  if (source === undefined || elementCount(source.shape) !== elementCount(shape)) return undefined;
  return target?.node === undefined ? source : undefined;
}

/** The number of axes at which the target has a symbolic size that differs from the source's size there. */
function movingSizes(source: TensorShape, target: TensorShape): number {
  return target.filter((dim, axis) => typeof dim === "string" && dim !== source[axis]).length;
}

/** The elements of `x` in the shape that `like` has at run time. */
export function ReshapeLike(x: Tensor, like: Tensor): Tensor {
  if (elementCount(x.shape) !== elementCount(like.shape)) {
    const found = `${formatShape(x.shape)} and ${formatShape(like.shape)}`;
    throw new ShapeError("Reshape", `${found} must have the same number of elements, but have not`);
  }
  if (movingSizes(x.shape, like.shape) <= 1) return Reshape(x, like.shape);
  return emitReshape(x, Shape(like), like.shape);
}

/**
 * The elements of `x` in a shape with one symbolic size, where sizes of different names are the same at run time, which the caller knows
 * and the graph cannot see. A run in which they are not fails.
 */
export function ReshapeAssuming(x: Tensor, shape: TensorShape): Tensor {
  const values = shape.map((dim) => (typeof dim === "number" ? dim : -1));
  const numbers = (sizes: TensorShape) =>
    sizes.reduce<number>((product, dim) => product * (typeof dim === "number" ? dim : 1), 1);
  if (values.filter((size) => size === -1).length !== 1 || numbers(x.shape) !== numbers(shape)) {
    const rule = "one size must be symbolic, and the product of the others must stay the same";
    const change = `${formatShape(x.shape)} to ${formatShape(shape)}`;
    throw new ShapeError("Reshape", `${rule}, so ${change} is impossible`);
  }
  return emitReshape(reshapedFrom(x) ?? x, x.graph.constant("int64", values), shape);
}

/**
 * `x` in its own shape, which is read from `other` at run time. Nodes that use the result therefore wait until `other` is
 * computed, and onnxruntime does not merge them with equal nodes that use `x`.
 */
export function After(x: Tensor, other: Tensor): Tensor {
  if (!sameShape(x.shape, other.shape)) {
    const found = `${formatShape(x.shape)} and ${formatShape(other.shape)}`;
    throw new ShapeError("Reshape", `both tensors must have the same shape, but have ${found}`);
  }
  return emitReshape(x, Shape(other), x.shape);
}

/**
 * Returns `x`, a tensor of whole numbers, after allocating and freeing memory for `count` float32 values. onnxruntime keeps
 * this memory for later use, so a session can have from its first run on the memory that a later run will need.
 *
 * @param count int64 [1]; 0 allocates nothing.
 */
export function AfterReserving(x: Tensor, count: Tensor): Tensor {
  const { graph } = x;
  const inputs = [graph.constant("float32", [0], [1]), count];
  const zeros = graph.emit("Expand", inputs, {}, [{ dtype: "float32", shape: ["reserved"] }]).outputs[0]!;
  return Add(x, Cast(Mul(Shape(zeros), 0), x.dtype));
}

/** Validates a target shape, which may have one -1, and returns the complete shape. */
export function checkReshapeShape(from: TensorShape, target: readonly Dim[]): TensorShape {
  const open = target.indexOf(-1);
  const known = target.filter((_, axis) => axis !== open).reduce<Dim>((a, b) => multiplyDims(a, b), 1);
  const rest = divideDims(elementCount(from), known);
  const isWhole = open < 0 ? rest === 1 : rest !== undefined;
  if (!isWhole || target.lastIndexOf(-1) !== open) {
    const change = `${formatShape(from)} to ${formatShape(target)}`;
    const rule = "both shapes must have the same number of elements, and at most one size may be -1";
    throw new ShapeError("Reshape", `${rule}, so ${change} is impossible`);
  }
  return target.map((dim, axis) => (axis === open ? rest! : dim));
}

/** Axis `i` of the result is axis `perm[i]` of `x`. */
export function Transpose(x: Tensor, perm: readonly number[]): Tensor {
  const isPermutation = [...perm].sort((a, b) => a - b).every((axis, i) => axis === i);
  if (perm.length !== x.shape.length || !isPermutation) {
    const rule = `the permutation must name every axis of ${formatShape(x.shape)} once`;
    throw new ShapeError("Transpose", `${rule}, but is [${perm.join(", ")}]`);
  }
  const shape = perm.map((axis) => x.shape[axis]!);
  return x.graph.emit("Transpose", [x], { perm: [...perm] }, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** Joins tensors along an axis; their other axes must be equal. */
export function Concat(parts: readonly Tensor[], axis: number): Tensor {
  const first = parts[0];
  if (first === undefined) throw new ShapeError("Concat", "there must be at least one input");
  if (parts.length === 1) return first;
  const at = checkAxis("Concat", axis, first.shape.length);
  let joined: Dim = 0;
  for (const part of parts) {
    const agrees = part.shape.every((dim, i) => i === at || dim === first.shape[i]);
    if (!agrees || part.shape.length !== first.shape.length || part.dtype !== first.dtype) {
      const found = parts.map((p) => `${p.dtype}${formatShape(p.shape)}`).join(", ");
      throw new ShapeError(
        "Concat",
        `the inputs may differ only in the size of axis ${at}, but are ${found}`,
      );
    }
    joined = addDims(joined, part.shape[at]!);
  }
  const shape = first.shape.map((dim, i) => (i === at ? joined : dim));
  return first.graph.emit("Concat", parts, { axis: at }, [{ dtype: first.dtype, shape }]).outputs[0]!;
}

/** Splits a tensor along an axis of static size into parts of the given sizes. */
export function Split(x: Tensor, sizes: readonly number[], axis: number): Tensor[] {
  const at = checkAxis("Split", axis, x.shape.length);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total !== x.shape[at]) {
    const found = `[${sizes.join(", ")}]`;
    throw new ShapeError("Split", `the sizes of the parts must add up to ${x.shape[at]}, but are ${found}`);
  }
  const types = sizes.map((size) => ({
    dtype: x.dtype,
    shape: x.shape.map((dim, i) => (i === at ? size : dim)),
  }));
  const inputs = [x, x.graph.constant("int64", sizes)];
  return [...x.graph.emit("Split", inputs, { axis: at }, types).outputs];
}

/**
 * The sizes of tensors along an axis at run time: int64 [number of tensors]. A size that an input of the graph also has is
 * read from that input, so that the tensor need not be kept in memory for it.
 */
export function sizesAlong(likes: readonly Tensor[], axis: number): Tensor {
  const sizes = likes.map((like) => {
    const size = like.shape[axis]!;
    const input = like.graph.inputs.find(({ shape }) => typeof size === "string" && shape.includes(size));
    const at = input?.shape.indexOf(size) ?? axis;
    return Shape(input ?? like, at, at + 1);
  });
  return Concat(sizes, 0);
}

/**
 * Splits a tensor along an axis into parts that have the sizes of `likes` along this axis at run time.
 *
 * @param sizes the result of {@link sizesAlong} for tensors of the same sizes, if it already exists.
 */
export function SplitLike(x: Tensor, likes: readonly Tensor[], axis: number, sizes?: Tensor): Tensor[] {
  const at = checkAxis("Split", axis, x.shape.length);
  const total = likes.reduce<Dim>((sum, like) => addDims(sum, like.shape[at]!), 0);
  if (total !== x.shape[at]) {
    throw new ShapeError(
      "Split",
      `the sizes of the parts must add up to ${x.shape[at]}, but add up to ${total}`,
    );
  }
  const types = likes.map((like) => ({
    dtype: x.dtype,
    shape: x.shape.map((dim, i) => (i === at ? like.shape[at]! : dim)),
  }));
  return [...x.graph.emit("Split", [x, sizes ?? sizesAlong(likes, at)], { axis: at }, types).outputs];
}

/** Elements start <= i < end of an axis. Both bounds are static and count from the first element. */
export function Slice(x: Tensor, axis: number, start: number, end: number): Tensor {
  const at = checkAxis("Slice", axis, x.shape.length);
  const size = x.shape[at]!;
  if (!(start >= 0 && start <= end) || (typeof size === "number" && end > size)) {
    throw new ShapeError("Slice", `the range ${start} to ${end} must lie within an axis of size ${size}`);
  }
  const shape = x.shape.map((dim, i) => (i === at ? end - start : dim));
  const bounds = [start, end, at].map((value) => x.graph.constant("int64", [value]));
  return x.graph.emit("Slice", [x, ...bounds], {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/**
 * Up to `length` elements of an axis from a position that is known only at run time: fewer near the end of the axis, and none
 * after it. It has no gradient.
 *
 * @param start int64 [1], not negative.
 * @param size the symbolic size of the result along the axis.
 */
export function SliceFrom(x: Tensor, axis: number, start: Tensor, length: number, size: Dim): Tensor {
  const at = checkAxis("Slice", axis, x.shape.length);
  if (start.dtype !== "int64" || formatShape(start.shape) !== "[1]") {
    const found = `${start.dtype}${formatShape(start.shape)}`;
    throw new ShapeError("Slice", `the start must be int64[1], but is ${found}`);
  }
  const { graph } = x;
  const end = Add(start, graph.constant("int64", [length]));
  const shape = x.shape.map((dim, i) => (i === at ? size : dim));
  const inputs = [x, start, end, graph.constant("int64", [at])];
  return graph.emit("Slice", inputs, {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** Repeats along axes of size 1 until the shape is that of `like`. */
export function ExpandLike(x: Tensor, like: Tensor): Tensor {
  const shape = checkBroadcastShape("Expand", x.shape, like.shape);
  if (formatShape(shape) !== formatShape(like.shape)) {
    const change = `${formatShape(x.shape)} to ${formatShape(like.shape)}`;
    throw new ShapeError("Expand", `only axes of size 1 can be repeated, so ${change} is impossible`);
  }
  if (formatShape(x.shape) === formatShape(shape)) return x;
  const isStatic = shape.every((dim) => typeof dim === "number");
  const target = isStatic ? x.graph.constant("int64", shape) : Shape(like);
  return x.graph.emit("Expand", [x, target], {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** Adds axes of size 1 at the given positions of the result. */
export function Unsqueeze(x: Tensor, axes: readonly number[]): Tensor {
  const rank = x.shape.length + axes.length;
  const places = axes.map((axis) => checkAxis("Unsqueeze", axis, rank));
  const rest = [...x.shape];
  const shape = Array.from({ length: rank }, (_, axis) => (places.includes(axis) ? 1 : rest.shift()!));
  const inputs = [x, x.graph.constant("int64", places)];
  return x.graph.emit("Unsqueeze", inputs, {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** Drops axes of size 1. */
export function Squeeze(x: Tensor, axes: readonly number[]): Tensor {
  const places = axes.map((axis) => checkAxis("Squeeze", axis, x.shape.length));
  if (places.some((axis) => x.shape[axis] !== 1)) {
    const found = `the axes [${axes.join(", ")}] of ${formatShape(x.shape)}`;
    throw new ShapeError("Squeeze", `only axes of size 1 can be dropped; ${found} are not all of size 1`);
  }
  const shape = x.shape.filter((_, axis) => !places.includes(axis));
  const inputs = [x, x.graph.constant("int64", places)];
  return x.graph.emit("Squeeze", inputs, {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}

/** The sizes of axes start..end at run time, as int64 [end - start]. */
export function Shape(x: Tensor, start = 0, end = x.shape.length): Tensor {
  const type = { dtype: "int64", shape: [end - start] } as const;
  return x.graph.emit("Shape", [x], { start, end }, [type]).outputs[0]!;
}

/** 0, 1, 2, ... (int64), with as many elements as `axis` of `like` has at run time. */
export function RangeAlong(like: Tensor, axis: number): Tensor {
  const at = checkAxis("Range", axis, like.shape.length);
  const size = like.shape[at]!;
  const { graph } = like;
  if (typeof size === "number")
    return graph.constant(
      "int64",
      Array.from({ length: size }, (_, i) => i),
    );
  const limit = Squeeze(Shape(like, at, at + 1), [0]);
  const inputs = [graph.scalar("int64", 0), limit, graph.scalar("int64", 1)];
  return graph.emit("Range", inputs, {}, [{ dtype: "int64", shape: [size] }]).outputs[0]!;
}

/** Zeros in the type of `like` and the shape that it has at run time. */
export function ZerosLike(like: Tensor): Tensor {
  return ExpandLike(zero(like.graph, like), like);
}

function zero(graph: Graph, like: Tensor): Tensor {
  return graph.constant(
    like.dtype,
    [0],
    like.shape.map(() => 1),
  );
}

function emitReshape(x: Tensor, target: Tensor, shape: TensorShape): Tensor {
  return x.graph.emit("Reshape", [x, target], {}, [{ dtype: x.dtype, shape }]).outputs[0]!;
}
