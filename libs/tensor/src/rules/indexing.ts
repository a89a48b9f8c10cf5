/** Gradient rules of reading and writing by index: the gradient of a read is an adding write, and that of a write is a read. */
import { GraphError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { Cast } from "../ops/elementwise.ts";
import { Gather, GatherElements, ScatterElements, ScatterND } from "../ops/indexing.ts";
import { ExpandLike, Reshape, Squeeze, ZerosLike } from "../ops/movement.ts";
import { formatShape } from "../shape.ts";
import type { GradientRule } from "./rule.ts";

/** dx[indices[n]] += g[n], for axis 0 */
export const gatherRule: GradientRule<"Gather"> = ({ node, inputs, gradients }) => {
  const [x, indices] = inputs as readonly [Tensor, Tensor];
  if (node.attributes.axis !== 0) {
    throw new GraphError("differentiate Gather", `the axis must be 0, but is ${node.attributes.axis}`);
  }
  const updates = Reshape(gradients[0]!, [-1, ...x.shape.slice(1)]);
  if (node.attributes.isDistinct) {
    return [ScatterND(ZerosLike(x), Reshape(Cast(indices, "int64"), [-1, 1]), updates)];
  }
  // ScatterND with addition cannot be used: several threads of onnxruntime may add to one row, so the order of the sum varies.
  const rows = Reshape(Cast(indices, "int64"), [-1, ...x.shape.slice(1).map(() => 1)]);
  return [ScatterElements(ZerosLike(x), ExpandLike(rows, updates), updates, 0, "add")];
};

/** dx[i][indices[i][j]] += g[i][j] */
export const gatherElementsRule: GradientRule<"GatherElements"> = ({ node, inputs, gradients }) => {
  const [x, indices] = inputs as readonly [Tensor, Tensor];
  return [ScatterElements(ZerosLike(x), indices, gradients[0]!, node.attributes.axis, "add")];
};

/** dx = g, but 0 where an update replaced x; d updates[i][j] = g[i][indices[i][j]] */
export const scatterElementsRule: GradientRule<"ScatterElements"> = ({ node, inputs, gradients }) => {
  const g = gradients[0]!;
  const { axis, reduction } = node.attributes;
  const [, indices, updates] = inputs as readonly [Tensor, Tensor, Tensor];
  const dx = reduction === "add" ? g : ScatterElements(g, indices, ZerosLike(updates), axis);
  return [dx, undefined, GatherElements(g, indices, axis)];
};

/** dx = g, but 0 where an update replaced x; d updates[n] = g[indices[n]], for indices of one axis */
export const scatterNDRule: GradientRule<"ScatterND"> = ({ node, inputs, gradients }) => {
  const g = gradients[0]!;
  const [, indices, updates] = inputs as readonly [Tensor, Tensor, Tensor];
  if (indices.shape.at(-1) !== 1) {
    const problem = `the indices must address one axis, but have the shape ${formatShape(indices.shape)}`;
    throw new GraphError("differentiate ScatterND", problem);
  }
  const dx = node.attributes.reduction === "add" ? g : ScatterND(g, indices, ZerosLike(updates));
  return [dx, undefined, Gather(g, Squeeze(indices, [indices.shape.length - 1]))];
};
