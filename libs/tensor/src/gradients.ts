/**
 * Reverse-mode differentiation: adds to a graph the nodes that compute the gradient of a loss with respect to chosen tensors.
 *
 * The nodes are visited once, from last to first. A node is differentiated if it lies between the chosen tensors and the
 * loss. If a tensor is used several times, the gradients of the uses are added in the order of the visits. The graph fixes
 * this order, so the bits of the result are fixed too.
 */
import { isFloating } from "./dtype.ts";
import { GraphError } from "./errors.ts";
import type { Graph, GraphNode, OwnGradient, Tensor } from "./graph.ts";
import { Add } from "./ops/elementwise.ts";
import type { PrimitiveName } from "./primitives.ts";
import type { GradientRule } from "./rules/rule.ts";
import { GRADIENT_RULES } from "./rules/table.ts";
import { formatShape, sameShape, staticCount } from "./shape.ts";

/** A tensor between the wanted tensors and the loss, and the gradient of the loss with respect to it, in the same shape. */
export interface GradientSeed {
  readonly tensor: Tensor;
  readonly gradient: Tensor;
}

/**
 * @param loss a floating-point tensor of one element.
 * @param wanted tensors that the loss depends on.
 * @returns d loss / d wanted[i], in the shape of wanted[i].
 * @throws GraphError if the loss does not depend on a wanted tensor, or only through primitives without a gradient.
 */
export function gradients(graph: Graph, loss: Tensor, wanted: readonly Tensor[]): Tensor[] {
  if (staticCount(loss.shape) !== 1 || !isFloating(loss.dtype)) {
    const found = `${loss.dtype}${formatShape(loss.shape)}`;
    throw new GraphError("differentiate", `the loss must be one floating-point number, but is ${found}`);
  }
  return gradientsFrom(
    graph,
    [{ tensor: loss, gradient: graph.constant(loss.dtype, [1], loss.shape) }],
    wanted,
  );
}

/**
 * The same if the gradient of the loss is already known for tensors between the wanted tensors and the loss: the nodes after
 * them are not visited.
 *
 * @param seeds distinct tensors. No seed is computed from another one, and every path to the loss passes through a seed.
 */
export function gradientsFrom(
  graph: Graph,
  seeds: readonly GradientSeed[],
  wanted: readonly Tensor[],
): Tensor[] {
  const nodes = [...graph.nodes];
  const active = activeTensors(nodes, wanted);
  const collected = new Map(seeds.map(({ tensor, gradient }) => [tensor, gradient]));
  for (const node of nodes.reverse()) {
    const received = node.outputs.map((output) => collected.get(output));
    if (received.every((gradient) => gradient === undefined)) continue;
    const own = ownGradientOf(node);
    const inputs = own?.inputs ?? node.inputs;
    if (!inputs.some((input) => input !== undefined && active.has(input))) continue;
    const found = own?.gradientsOf(received[0]!) ?? applyRule(node, received);
    found.forEach((gradient, at) => {
      const input = inputs[at];
      if (gradient === undefined || input === undefined || !active.has(input)) return;
      collect(collected, node, input, gradient);
    });
  }
  return wanted.map((tensor) => {
    const gradient = collected.get(tensor);
    if (gradient === undefined) {
      throw new GraphError(
        "differentiate",
        `the loss does not depend on ${tensor.name}, or only without a gradient`,
      );
    }
    return gradient;
  });
}

/** How the result of a node is differentiated, if it says so itself. */
function ownGradientOf({ outputs }: GraphNode): OwnGradient | undefined {
  const [output] = outputs;
  return output === undefined ? undefined : output.graph.ownGradients.get(output);
}

/** The wanted tensors and everything computed from them. */
function activeTensors(nodes: readonly GraphNode[], wanted: readonly Tensor[]): Set<Tensor> {
  const active = new Set(wanted);
  for (const node of nodes) {
    const inputs = ownGradientOf(node)?.inputs ?? node.inputs;
    if (!inputs.some((input) => input !== undefined && active.has(input))) continue;
    for (const output of node.outputs) if (isFloating(output.dtype)) active.add(output);
  }
  return active;
}

function applyRule(node: GraphNode, received: readonly (Tensor | undefined)[]) {
  // The table has a rule for every primitive; the type system cannot see that it fits the type of this node.
  const rule = GRADIENT_RULES[node.primitive] as unknown as GradientRule<PrimitiveName>;
  return rule({ node, inputs: node.inputs, outputs: node.outputs, gradients: received });
}

function collect(collected: Map<Tensor, Tensor>, node: GraphNode, input: Tensor, gradient: Tensor): void {
  if (!sameShape(gradient.shape, input.shape) || gradient.dtype !== input.dtype) {
    const found = `${gradient.dtype}${formatShape(gradient.shape)}`;
    const problem = `the gradient of ${input.dtype}${formatShape(input.shape)} is ${found}`;
    throw new GraphError(`differentiate ${node.primitive}`, `${problem}; both must be the same`);
  }
  const before = collected.get(input);
  collected.set(input, before === undefined ? gradient : Add(before, gradient));
}
