/**
 * The value head of a critic and its loss with their gradients. A value is one number a position, so that nothing is
 * computed in chunks. Letters as in training-graph.ts.
 */
import { buildValue, headParameters, type ModelSpec, type WeightTensors } from "@hone/nn";
import { Gather, type Graph, gradients, Mul, ReduceSum, type Tensor } from "@hone/tensor";
import { buildTerms } from "../losses/registry.ts";
import type { GraphObjective } from "./head-loss.ts";
import { chunkInput, INPUT } from "./training-names.ts";

export interface ValueGradients {
  /** [E] */
  readonly value: Tensor;
  /** [] */
  readonly loss: Tensor;
  /** [U, C] */
  readonly readGradient: Tensor;
  /** By the names of the head's parameters. */
  readonly headGradients: Readonly<Record<string, Tensor>>;
}

/** Computes the values [E] of the entries. @param read [U, C] hidden states */
export function buildValues(graph: Graph, read: Tensor, weights: WeightTensors): Tensor {
  const choices = graph.input(chunkInput(INPUT.choices, 0), "int32", ["entries0"]);
  return Gather(buildValue(read, weights), choices);
}

/** Also computes the loss of an objective, which is a sum over entries, and its gradients. */
export function buildValueLoss(
  graph: Graph,
  spec: ModelSpec,
  { weights, read }: { readonly weights: WeightTensors; readonly read: Tensor },
  { terms }: GraphObjective,
): ValueGradients {
  const value = buildValues(graph, read, weights);
  const input = (name: string) => graph.input(chunkInput(name, 0), "float32", value.shape);
  const perEntry = Mul(buildTerms(terms, value, input), input(INPUT.weight));
  const loss = ReduceSum(perEntry, { keepDims: false });
  const names = headParameters(spec);
  const [readGradient, ...found] = gradients(graph, loss, [read, ...names.map((name) => weights[name]!)]);
  const headGradients = Object.fromEntries(names.map((name, i) => [name, found[i]!]));
  return { value, loss, readGradient: readGradient!, headGradients };
}
