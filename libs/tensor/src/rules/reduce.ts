/** Gradient rules of reductions and functions along an axis; g is the gradient of the loss with respect to the result y. */
import { GraphError } from "../errors.ts";
import type { GraphNode, Tensor } from "../graph.ts";
import { Add, Cast, Div, Equal, Exp, Mul, Sub } from "../ops/elementwise.ts";
import { ExpandLike, Unsqueeze } from "../ops/movement.ts";
import { CumSum, ReduceSum } from "../ops/reduce.ts";
import { divideDims, elementCount, formatShape } from "../shape.ts";
import { type GradientRule, unaryRule } from "./rule.ts";

type Reduction = "ReduceSum" | "ReduceMean" | "ReduceMax";

/** dx = g, repeated along the reduced axes */
export const reduceSumRule: GradientRule<"ReduceSum"> = ({ node, inputs, gradients }) => {
  return [ExpandLike(withReducedAxes(node, gradients[0]!), inputs[0]!)];
};

/** dx = g / n, repeated along the reduced axes of n elements */
export const reduceMeanRule: GradientRule<"ReduceMean"> = ({ node, inputs, outputs, gradients }) => {
  const x = inputs[0]!;
  const n = divideDims(elementCount(x.shape), elementCount(outputs[0]!.shape));
  if (typeof n !== "number") {
    const problem = `the reduced axes must be static, but the input has the shape ${formatShape(x.shape)}`;
    throw new GraphError("differentiate ReduceMean", problem);
  }
  return [ExpandLike(Mul(withReducedAxes(node, gradients[0]!), 1 / n), x)];
};

/** dx = g [x = y] / count of the elements that equal the maximum */
export const reduceMaxRule: GradientRule<"ReduceMax"> = ({ node, inputs, outputs, gradients }) => {
  const x = inputs[0]!;
  const isLargest = Cast(Equal(x, withReducedAxes(node, outputs[0]!)), x.dtype);
  const count = ReduceSum(isLargest, { axes: reducedAxes(node) });
  return [Mul(isLargest, Div(withReducedAxes(node, gradients[0]!), count))];
};

/** dx = y (g - sum(g y)) */
export const softmaxRule = unaryRule<"Softmax">((g, _x, y, node) => {
  const sum = ReduceSum(Mul(g, y), { axes: [node.attributes.axis] });
  return Mul(y, Sub(g, sum));
});

/** dx = g - e^y sum(g) */
export const logSoftmaxRule = unaryRule<"LogSoftmax">((g, _x, y, node) => {
  const sum = ReduceSum(g, { axes: [node.attributes.axis] });
  return Sub(g, Mul(Exp(y), sum));
});

/** dx = sum of g over this element and all later ones */
export const cumSumRule: GradientRule<"CumSum"> = ({ node, gradients }) => {
  const g = gradients[0]!;
  const [axis] = g.graph.constantValues(node.inputs[1]!);
  return [Add(Sub(ReduceSum(g, { axes: [axis!] }), CumSum(g, axis!)), g)];
};

/** A result of the reduction with the reduced axes restored with size 1. */
function withReducedAxes(node: GraphNode<Reduction>, result: Tensor): Tensor {
  return node.attributes.keepdims === 1 ? result : Unsqueeze(result, reducedAxes(node));
}

function reducedAxes(node: GraphNode<Reduction>): number[] {
  return node.inputs[1]!.graph.constantValues(node.inputs[1]!);
}
