/**
 * What sequences that begin with the same tokens read once: the rows of their common prefix.
 *
 * Letters as in slot-attention.ts; P prefixes, M the most sequences of one, K its rows, R the rows of a sequence's queries in a product. A prefix
 * has one product with the queries of all its sequences, so its rows come from memory once and not once for each sequence. A row has the same
 * scores as in a slot of its own, and adds as much, but in another order: this is only for sums that have none (eight-bit-attention.ts).
 *
 * Inputs:
 *
 *   sharedKeys.0, ...                   the rows of prefixes [P, G, K, D] (slot-rows.ts); rows after a prefix are masked and must be finite
 *   prefixSequences [P, M]              the sequences of each prefix, int32; what is too much repeats any sequence
 *   sequencePrefixes [S]                the prefix of each sequence, int32; without one any, whose rows the caller masks
 *   sequenceMembers [S]                 which of the M sequences of its prefix it is, int32; without one any
 *   sharedRows [S]                      the rows of its prefix, int32; 0 without one
 */
import {
  Add,
  Cast,
  Gather,
  type Graph,
  Mul,
  multiplyDims,
  RangeAlong,
  Reshape,
  sizesAlong,
  type Tensor,
  Unsqueeze,
} from "@hone/tensor";
import type { ModelSpec } from "../model/model-spec.ts";

/** Where the rows of queries are: among the sequences, and among the prefixes. */
export interface SharedQueries {
  /** [P, G, M*R] the row of each prefix's query among those of the sequences */
  readonly ofPrefixes: Tensor;
  /** [S, G, R] the row of each sequence's query among those of the prefixes */
  readonly ofSequences: Tensor;
}

export interface SharedPrefixes {
  /** [S] */
  readonly rows: Tensor;
  /** What each sequence's prefix has: [P, ...] -> [S, ...] */
  toSequences(x: Tensor): Tensor;
  /** @param queries [S, 1, R, 1] any tensor */
  queriesOf(queries: Tensor): SharedQueries;
  /**
   * The product of each sequence's rows with its prefix; without one, that of another sequence.
   * @param x [S, G, R, ...]
   * @param multiply the product with all rows of a prefix [P, G, M*R, ...]
   */
  each(x: Tensor, queries: SharedQueries, multiply: (x: Tensor) => Tensor): Tensor;
}

export function sharedPrefixes(graph: Graph, spec: ModelSpec): SharedPrefixes {
  const { numKeyValueHeads: groups } = spec;
  const input = (name: string, shape: readonly string[]) => graph.input(name, "int32", shape);
  const wide = (x: Tensor) => Cast(x, "int64");
  const sequences_PM = input("prefixSequences", ["prefixes", "members"]);
  const prefixes_S = input("sequencePrefixes", ["sequences"]);
  const members_S = input("sequenceMembers", ["sequences"]);
  const group_G = graph.constant(
    "int64",
    Array.from({ length: groups }, (_, group) => group),
  );
  const rows_S = input("sharedRows", ["sequences"]);
  return {
    rows: rows_S,
    toSequences: (x) => Gather(x, prefixes_S),
    queriesOf(queries) {
      const rows = queries.shape[2]!;
      const [row_R, numRows] = [RangeAlong(queries, 2), sizesAlong([queries], 2)];
      const head_GR = Add(Mul(Unsqueeze(group_G, [1]), numRows), row_R);
      const first_PM = Mul(Mul(wide(sequences_PM), groups), numRows);
      const all_PGMR = Add(Unsqueeze(first_PM, [1, 3]), Unsqueeze(head_GR, [1]));
      const group_SG = Add(Unsqueeze(Mul(wide(prefixes_S), groups), [1]), group_G);
      const member_SG = Add(Mul(group_SG, sizesAlong([sequences_PM], 1)), Unsqueeze(wide(members_S), [1]));
      return {
        ofPrefixes: Reshape(all_PGMR, ["prefixes", groups, multiplyDims("members", rows)]),
        ofSequences: Add(Unsqueeze(Mul(member_SG, numRows), [2]), row_R),
      };
    },
    each: (x, queries, multiply) =>
      gatherRows(multiply(gatherRows(x, queries.ofPrefixes)), queries.ofSequences),
  };
}

/** @param x [..., ..., ..., D] @param rows [A, B, C] of its first three axes together @returns [A, B, C, D] */
function gatherRows(x: Tensor, rows: Tensor): Tensor {
  const [width, count] = [x.shape[3]!, x.shape.slice(0, 3).reduce((a, b) => multiplyDims(a, b))];
  // A size that is known at run time only stays at its axis.
  const flat = typeof width === "number" ? [count, width] : [count, 1, 1, width];
  return Reshape(Gather(Reshape(x, flat), rows), [...rows.shape, width]);
}
