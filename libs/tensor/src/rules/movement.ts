/** Gradient rules of primitives that move elements: the gradient is moved back. */
import { GraphError } from "../errors.ts";
import type { Tensor } from "../graph.ts";
import { Concat, ReshapeLike, Slice, Split, SplitLike, Transpose, ZerosLike } from "../ops/movement.ts";
import { formatShape } from "../shape.ts";
import { type GradientRule, unaryRule, unbroadcast } from "./rule.ts";

/** dx = g in the shape of x; also for Squeeze and Unsqueeze. */
export const reshapeRule: GradientRule<"Reshape" | "Squeeze" | "Unsqueeze"> = ({ inputs, gradients }) => [
  ReshapeLike(gradients[0]!, inputs[0]!),
];

/** dx = g under the inverse permutation */
export const transposeRule = unaryRule<"Transpose">((g, _x, _y, node) => {
  const { perm } = node.attributes;
  return Transpose(
    g,
    perm.map((_, axis) => perm.indexOf(axis)),
  );
});

/** Each input of the concatenation gets its part of g. */
export const concatRule: GradientRule<"Concat"> = ({ node, inputs, gradients }) => {
  const { axis } = node.attributes;
  const parts = inputs.map((part) => part!);
  const sizes = parts.map(({ shape }) => shape[axis]!);
  const areStatic = sizes.every((size) => typeof size === "number");
  return areStatic ? Split(gradients[0]!, sizes, axis) : SplitLike(gradients[0]!, parts, axis);
};

/** dx = the joined gradients of the parts, 0 for a part that the loss does not depend on */
export const splitRule: GradientRule<"Split"> = ({ node, outputs, gradients }) => {
  const parts = outputs.map((part, at) => gradients[at] ?? ZerosLike(part));
  return [Concat(parts, node.attributes.axis)];
};

/** dx = g, padded with zeros on both sides */
export const sliceRule: GradientRule<"Slice"> = ({ inputs, gradients }) => {
  const x = inputs[0]!;
  const [start, end, axis] = inputs.slice(1).map((bound) => x.graph.constantValues(bound!)[0]!) as [
    number,
    number,
    number,
  ];
  const size = x.shape[axis]!;
  if (typeof size !== "number") {
    const problem = `axis ${axis} must be static, but the input has the shape ${formatShape(x.shape)}`;
    throw new GraphError("differentiate Slice", problem);
  }
  const zeros = (from: number, to: number): Tensor[] =>
    from === to ? [] : [ZerosLike(Slice(x, axis, from, to))];
  return [Concat([...zeros(0, start), gradients[0]!, ...zeros(end, size)], axis)];
};

/** dx = g summed over the repeated elements */
export const expandRule: GradientRule<"Expand"> = ({ inputs, gradients }) => [
  unbroadcast(gradients[0]!, inputs[0]!),
];
