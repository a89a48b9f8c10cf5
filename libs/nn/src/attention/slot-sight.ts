/**
 * What the queries of a run see of the three parts of their contexts (eight-bit-slots.ts), which is the same in all layers. Letters as there.
 *
 * The parts are in the order shared, own, new. Runs read all of them, or the last ones.
 */
import {
  Add,
  Cast,
  Concat,
  type Dim,
  Gather,
  type Graph,
  Less,
  LessOrEqual,
  multiplyDims,
  RangeAlong,
  Reshape,
  Sub,
  sizesAlong,
  type Tensor,
  Unsqueeze,
} from "@hone/tensor";
import { biasOf } from "./attention.ts";
import type { Queries } from "./cached-attention.ts";
import { summedRounding } from "./eight-bit-attention.ts";
import type { SharedPrefixes, SharedQueries } from "./shared-prefix.ts";
import type { SlotTokens } from "./slot-attention.ts";

/** R rows of queries for each sequence and key/value head. */
export interface Sight {
  /** By part, `bias` [S, 1, R, L]. */
  readonly parts: readonly Tensor[];
  /** By the first part that is read: `bias` of all parts from this one on, and their sizes. */
  readonly biases: readonly Tensor[];
  readonly sizes: readonly Tensor[];
  /** [S, 1, R, 1] `summedRounding` */
  readonly rounding: Tensor;
  readonly shared: SharedQueries;
  /** The same for both digits of each query. */
  readonly sharedDigits: SharedQueries;
}

/** What a run's inputs say of the sequences. */
export interface SlotSequences extends SlotTokens {
  readonly queries: Queries;
  readonly prefixes: SharedPrefixes;
  /** [S] the rows of each sequence's slot, and the position of its first new token, int32 */
  readonly contextRows: Tensor;
  readonly contextEnds: Tensor;
}

export interface Sights {
  /** Of the queries of all new tokens. */
  readonly all: Sight;
  /** Of the last new token of each sequence. */
  readonly last: Sight;
  /** The same where it is the only one. */
  readonly single: Sight;
}

/** @param repeats query heads of a key/value head @param shared and own: tensors [..., L] of the stored parts */
export function slotSights(
  graph: Graph,
  repeats: number,
  { queries, prefixes, positionIds, lastTokens, contextRows, contextEnds }: SlotSequences,
  shared: Tensor,
  own: Tensor,
): Sights {
  const perSequence = (x_S: Tensor) => Reshape(x_S, ["sequences", 1, 1, 1]);
  const placesIn = (part: Tensor) => Cast(RangeAlong(part, part.shape.length - 1), "int32");

  /** @param positions of the queries [S, count] @returns their sight, by the places of new rows [L] */
  function readersAt(positions: Tensor, count: Dim): (newPlaces: Tensor) => Sight {
    const perHead = Add(Unsqueeze(positions, [2]), graph.constant("int32", new Array(repeats).fill(0)));
    const position_S1R1 = Reshape(perHead, ["sequences", 1, multiplyDims(count, repeats), 1]);
    const inAll = (x_S: Tensor) => Add(perSequence(x_S), Sub(position_S1R1, position_S1R1));
    const stored = [
      biasOf(Less(placesIn(shared), inAll(prefixes.rows))),
      biasOf(Less(placesIn(own), inAll(contextRows))),
    ];
    const same = {
      rounding: summedRounding(position_S1R1),
      shared: prefixes.queriesOf(position_S1R1),
      sharedDigits: prefixes.queriesOf(Concat([position_S1R1, position_S1R1], 2)),
    };
    return (newPlaces) => {
      const isSeen = LessOrEqual(newPlaces, Sub(position_S1R1, perSequence(contextEnds)));
      const parts = [...stored, biasOf(isSeen)];
      return {
        ...same,
        parts,
        biases: parts.map((_, first) => Concat(parts.slice(first), 3)),
        sizes: parts.map((_, first) => sizesAlong(parts.slice(first), 3)),
      };
    };
  }

  const position_N = Reshape(positionIds, ["tokens"]);
  const atAll = readersAt(Gather(position_N, queries.tokens), "queries");
  const atLast = readersAt(Unsqueeze(Gather(position_N, lastTokens), [1]), 1);
  const newPlaces = placesIn(queries.tokens);
  return { all: atAll(newPlaces), last: atLast(newPlaces), single: atLast(graph.constant("int32", [0])) };
}
