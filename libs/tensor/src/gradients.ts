/**
 * Reverse-mode differentiation: adds to a graph the nodes that compute a loss's gradient in chosen tensors.
 *
 * The nodes are walked backwards once. A node is differentiated when it lies between the chosen tensors and the loss;
 * where several uses of a tensor meet, their gradients are added in the order of the walk, which is fixed by the
 * graph, so that the result's bits are too.
 */
import { isFloating } from "./dtype.ts";
import { GraphError } from "./errors.ts";
import type { Graph, GraphNode, Tensor } from "./graph.ts";
import { Add } from "./ops/elementwise.ts";
import type { PrimitiveName } from "./primitives.ts";
import type { GradientRule } from "./rules/rule.ts";
import { GRADIENT_RULES } from "./rules/table.ts";
import { formatShape, sameShape, staticCount } from "./shape.ts";

/** A tensor between the wanted tensors and the loss, with the loss's gradient in it, which has its shape. */
export interface GradientSeed {
  readonly tensor: Tensor;
  readonly gradient: Tensor;
}

/**
 * @param loss a floating-point tensor of one element.
 * @param wanted tensors that the loss depends on.
 * @returns d loss / d wanted[i], in the shape of wanted[i].
 * @throws GraphError where the loss does not depend on a wanted tensor, or a primitive between has no gradient.
 */
export function gradients(graph: Graph, loss: Tensor, wanted: readonly Tensor[]): Tensor[] {
  if (staticCount(loss.shape) !== 1 || !isFloating(loss.dtype)) {
    throw new GraphError("differentiate", "a loss is one number", `${loss.dtype}${formatShape(loss.shape)}`);
  }
  return gradientsFrom(
    graph,
    [{ tensor: loss, gradient: graph.constant(loss.dtype, [1], loss.shape) }],
    wanted,
  );
}

/**
 * The same where the loss's gradient is known already in tensors on the way: what comes after them is not walked.
 *
 * @param seeds distinct tensors that no other seed is computed from, and that the loss is reached through alone.
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
    if (!node.inputs.some((input) => input !== undefined && active.has(input))) continue;
    applyRule(node, received).forEach((gradient, at) => {
      const input = node.inputs[at];
      if (gradient === undefined || input === undefined || !active.has(input)) return;
      collect(collected, node, input, gradient);
    });
  }
  return wanted.map((tensor) => {
    const gradient = collected.get(tensor);
    if (gradient === undefined) {
      throw new GraphError("differentiate", "the loss depends on every wanted tensor", tensor.name);
    }
    return gradient;
  });
}

/** The wanted tensors and everything computed from them. */
function activeTensors(nodes: readonly GraphNode[], wanted: readonly Tensor[]): Set<Tensor> {
  const active = new Set(wanted);
  for (const node of nodes) {
    if (!node.inputs.some((input) => input !== undefined && active.has(input))) continue;
    for (const output of node.outputs) if (isFloating(output.dtype)) active.add(output);
  }
  return active;
}

function applyRule(node: GraphNode, received: readonly (Tensor | undefined)[]) {
  // The table pairs every primitive with a rule for its own nodes; the type system cannot follow the pairing.
  const rule = GRADIENT_RULES[node.primitive] as unknown as GradientRule<PrimitiveName>;
  return rule({ node, inputs: node.inputs, outputs: node.outputs, gradients: received });
}

function collect(collected: Map<Tensor, Tensor>, node: GraphNode, input: Tensor, gradient: Tensor): void {
  if (!sameShape(gradient.shape, input.shape) || gradient.dtype !== input.dtype) {
    const current = `${gradient.dtype}${formatShape(gradient.shape)} for ${formatShape(input.shape)}`;
    throw new GraphError(`differentiate ${node.primitive}`, "a gradient has its tensor's shape", current);
  }
  const before = collected.get(input);
  collected.set(input, before === undefined ? gradient : Add(before, gradient));
}
