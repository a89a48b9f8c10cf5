/** Operators that choose what is computed. */
import { GraphError, ShapeError } from "../errors.ts";
import type { GraphNode, Tensor } from "../graph.ts";
import { formatShape } from "../shape.ts";
import { Identity } from "./elementwise.ts";

/**
 * What one of two branches computes; the other one is not computed. It has no gradient.
 *
 * @param condition bool without axes
 * @param whenTrue adds the nodes of a branch, and @returns its results
 * @param whenFalse the same, with results of the same types
 * @throws GraphError if the branches have results of different types, or none
 */
export function If(
  condition: Tensor,
  whenTrue: () => readonly Tensor[],
  whenFalse: () => readonly Tensor[],
): Tensor[] {
  if (condition.dtype !== "bool" || condition.shape.length > 0)
    throw new ShapeError("If", `the condition must be bool[], but is ${typeOf(condition)}`);
  const { graph } = condition;
  const branchOf = (build: () => readonly Tensor[]) => graph.branch((nodes) => madeHere(build(), nodes));
  const [then_branch, else_branch] = [branchOf(whenTrue), branchOf(whenFalse)];
  const [found, other] = [then_branch, else_branch].map(({ outputs }) => outputs.map(typeOf).join(", "));
  if (found !== other || found === "") {
    const rule = "both branches must have the same results, and at least one";
    throw new GraphError("apply If", `${rule}, but have (${found}) and (${other})`);
  }
  return [...graph.emit("If", [condition], { then_branch, else_branch }, then_branch.outputs).outputs];
}

/** Results of a branch, each of which one of its nodes makes, as ONNX wants it. */
function madeHere(results: readonly Tensor[], nodes: readonly GraphNode[]): Tensor[] {
  const isMadeHere = ({ node }: Tensor) => node !== undefined && nodes.includes(node);
  return results.map((result, at) =>
    isMadeHere(result) && results.indexOf(result) === at ? result : Identity(result),
  );
}

function typeOf({ dtype, shape }: Tensor): string {
  return `${dtype}${formatShape(shape)}`;
}
