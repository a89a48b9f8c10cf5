/** A graph of a model's layers alone, for measuring how long they take on a machine. */
import { Graph, Reshape, type Tensor } from "@hone/tensor";
import type { ModelSpec } from "./model/model-spec.ts";
import { listParameters } from "./model/parameters.ts";
import { buildTransformer, weightInitializers } from "./transformer.ts";

/**
 * Builds the layers and the last norm without embedding, head and attention: the result of the attention is replaced by the
 * queries, so keys and values are not computed either.
 *
 * Inputs: hidden [1, N, C] float32, positionIds [1, N] int32. Output: last [1, N, C].
 *
 * @param isWeightLeft see `TransformerInputs`.
 */
export function buildLayersGraph(spec: ModelSpec, isWeightLeft: boolean): Graph {
  const graph = new Graph("layers");
  const embedded = graph.input("hidden", "float32", [1, "tokens", spec.hiddenSize]);
  const positionIds = graph.input("positionIds", "int32", [1, "tokens"]);
  const weights = weightInitializers(graph, listParameters(spec));
  const width = spec.numHeads * spec.headDim;
  const attend = (_layer: number, q: Tensor) => Reshape(q, [1, "tokens", width]);
  graph.output(
    "last",
    buildTransformer(graph, spec, { embedded, positionIds, weights, attend, isWeightLeft }),
  );
  return graph;
}
