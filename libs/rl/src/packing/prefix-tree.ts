/**
 * The prefix tree of a batch of samples: an order of samples in which those that share a prefix stand together.
 *
 * A token's forward pass depends on its prefix only, so what several samples share is computed once, sampled tokens
 * included. The last trained token of a sample and what follows it predict nothing and are left out, unless another
 * sample goes on from there.
 */

import type { MaskedTokens } from "../rollout.ts";

/** A sample's place in the order. */
export interface OrderedSample {
  /** Index of the sample in the batch. */
  readonly sample: number;
  /** Tokens from its start that have to be computed. */
  readonly computedLength: number;
}

interface Node {
  readonly children: Map<number, Node>;
  /** Samples whose computed part ends here, in order of their index. */
  readonly ending: OrderedSample[];
}

/**
 * Orders the samples depth-first through their prefix tree; children stand in order of their first sample. Samples
 * without a trained token are left out.
 */
export function orderByPrefix(samples: readonly MaskedTokens[]): OrderedSample[] {
  const root = emptyNode();
  samples.forEach((sample, index) => {
    const computedLength = computedLengthOf(sample);
    if (computedLength === 0) return;
    let node = root;
    for (let i = 0; i < computedLength; i++) {
      const token = sample.tokenIds[i]!;
      let child = node.children.get(token);
      if (child === undefined) {
        child = emptyNode();
        node.children.set(token, child);
      }
      node = child;
    }
    node.ending.push({ sample: index, computedLength });
  });
  const ordered: OrderedSample[] = [];
  // An explicit stack, as a text of many thousand tokens would be too deep for recursion.
  const open: Node[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    ordered.push(...node.ending);
    open.push(...[...node.children.values()].reverse());
  }
  return ordered;
}

/** Number of tokens that two samples share from their start, at most `limit`. */
export function sharedPrefix(a: MaskedTokens, b: MaskedTokens, limit: number): number {
  let length = 0;
  while (length < limit && a.tokenIds[length] === b.tokenIds[length]) length++;
  return length;
}

/** Index of the last trained token: the tokens before it are computed, it is a target only. */
function computedLengthOf(sample: MaskedTokens): number {
  for (let i = sample.tokenIds.length - 1; i > 0; i--) if (sample.lossMask[i] === 1) return i;
  return 0;
}

function emptyNode(): Node {
  return { children: new Map(), ending: [] };
}
