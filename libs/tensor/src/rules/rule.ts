/** The type of a gradient rule, and helpers for rules. */
import type { GraphNode, Tensor } from "../graph.ts";
import { ReshapeLike } from "../ops/movement.ts";
import { ReduceSum } from "../ops/reduce.ts";
import type { PrimitiveName } from "../primitives.ts";
import { sameShape } from "../shape.ts";

/** A node that is being differentiated. */
export interface RuleContext<P extends PrimitiveName> {
  readonly node: GraphNode<P>;
  /** The node's inputs; an optional one that is left out is undefined. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly outputs: readonly Tensor[];
  /** The gradient of the loss with respect to each output; undefined if the loss does not depend on it. At least one is defined. */
  readonly gradients: readonly (Tensor | undefined)[];
}

/**
 * Vector-Jacobian product of a primitive: computes the gradients of its inputs from those of its outputs, one per input;
 * undefined for inputs without a gradient (whole numbers, conditions, shapes).
 */
export type GradientRule<P extends PrimitiveName = PrimitiveName> = (
  context: RuleContext<P>,
) => readonly (Tensor | undefined)[];

/** The rule of a primitive with one differentiable input and one output: `vjp` computes dx from (g, x, y). */
export function unaryRule<P extends PrimitiveName>(
  vjp: (g: Tensor, x: Tensor, y: Tensor, node: GraphNode<P>) => Tensor | undefined,
): GradientRule<P> {
  return function differentiateUnary({ node, inputs, outputs, gradients }) {
    return [vjp(gradients[0]!, inputs[0]!, outputs[0]!, node)];
  };
}

/** The rule of a broadcasting primitive: `vjp` computes (da, db) from (g, a, b, y) in the shape of the result. */
export function binaryRule<P extends PrimitiveName>(
  vjp: (g: Tensor, a: Tensor, b: Tensor, y: Tensor) => readonly [Tensor, Tensor],
): GradientRule<P> {
  return function differentiateBinary({ inputs, outputs, gradients }) {
    const [a, b] = inputs as readonly [Tensor, Tensor];
    const [da, db] = vjp(gradients[0]!, a, b, outputs[0]!);
    return [unbroadcast(da, a), unbroadcast(db, b)];
  };
}

/** The rule of a primitive without a gradient, whose result is a whole number, a truth value or a shape. */
export const stopRule: GradientRule = () => [];

/** Sums a gradient over the axes along which `like` was repeated, so that it has the shape of `like`. */
export function unbroadcast(gradient: Tensor, like: Tensor): Tensor {
  if (sameShape(gradient.shape, like.shape)) return gradient;
  const added = gradient.shape.length - like.shape.length;
  const axes = gradient.shape.flatMap((dim, axis) => {
    const original = axis < added ? 1 : like.shape[axis - added];
    return original === 1 && dim !== 1 ? [axis] : [];
  });
  const summed = axes.length === 0 ? gradient : ReduceSum(gradient, { axes });
  return sameShape(summed.shape, like.shape) ? summed : ReshapeLike(summed, like);
}
