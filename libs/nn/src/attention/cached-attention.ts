/**
 * Shared by both kinds of attention for generation: new tokens arrive without padding, and attention needs them grouped by
 * sequence.
 *
 * Letters as in decode-graph.ts.
 */
import { type Dim, Gather, type Graph, multiplyDims, Reshape, type Tensor } from "@hone/tensor";

/** Names of the graph inputs for a layer's earlier keys and values. */
export function contextInputs(layer: number): { readonly keys: string; readonly values: string } {
  return { keys: `keys.${layer}`, values: `values.${layer}` };
}

/** Converts between the new tokens [1, N, ...] and the queries of each sequence [S, Q, ...]. */
export interface Queries {
  /** [S, Q] index of the new token of each query. */
  readonly tokens: Tensor;
  /** [1, N, heads..., D] -> [S, Q, heads..., D] */
  split(x: Tensor, heads: readonly number[]): Tensor;
  /** [S, Q, heads..., D] -> [1, N, heads*D] */
  join(x: Tensor): Tensor;
}

/**
 * Declares the inputs, int32:
 *
 *   queryTokens [S, Q]     index of each query's new token; padding repeats the sequence's last token
 *   tokenQueries [1, N]    index s * Q + q of each new token's query
 */
export function declareQueries(graph: Graph): Queries {
  const queryTokens = graph.input("queryTokens", "int32", ["sequences", "queries"]);
  const tokenQueries = graph.input("tokenQueries", "int32", [1, "tokens"]);
  const widthOf = (sizes: readonly Dim[]) => sizes.reduce<Dim>((a, b) => multiplyDims(a, b), 1);
  return {
    tokens: queryTokens,
    split(x, heads) {
      const sizes = [...heads, x.shape.at(-1)!];
      const x_SQC = Gather(Reshape(x, ["tokens", widthOf(sizes)]), queryTokens);
      return Reshape(x_SQC, ["sequences", "queries", ...sizes]);
    },
    join(x) {
      const rows = multiplyDims("sequences", "queries");
      return Gather(Reshape(x, [rows, widthOf(x.shape.slice(2))]), tokenQueries);
    },
  };
}
