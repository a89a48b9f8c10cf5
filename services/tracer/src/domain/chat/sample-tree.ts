/**
 * The samples of a rollout as a tree: each hangs below the earlier sample with which it shares most tokens from the beginning, if
 * an answer of the model is among them, so it shows where histories branch. A prompt alone is no history. N samples are sorted by their tokens; what two of them share is then the least that neighbours
 * between them share, so the tokens are compared N times, not N².
 */

import type { Episode } from "@hone/proto-gen/rollout";

export interface SampleNode {
  readonly sample: number;
  /** The sample from which it branches; null = it begins anew. */
  readonly parent: number | null;
  /** Number of tokens that it shares with its parent. */
  readonly sharedTokens: number;
  readonly tokens: number;
  readonly sampledTokens: number;
  /** The turns whose answers it trains. */
  readonly turns: readonly number[];
  /** The turns of its history: those of the samples that it branches from, as far as it shares them, and its own. */
  readonly history: readonly number[];
}

/** More samples than this are not compared, and all begin anew. */
const MAX_COMPARED = 1_000;

export function sampleTree({ samples, turns }: Pick<Episode, "samples" | "turns">): readonly SampleNode[] {
  const ids = samples.map(({ tokenIds }) => tokenIds);
  const branches = ids.length > MAX_COMPARED ? new Map<number, Branch>() : branchesOf(ids);
  const nodes: SampleNode[] = [];
  for (const [sample, { tokenIds, lossMask }] of samples.entries()) {
    const nearest = branches.get(sample);
    const own = turns.filter((turn) => turn.sample === sample).map(({ index }) => index);
    const inherited = nearest === undefined ? [] : (nodes[nearest.parent]?.history ?? []);
    const shared = inherited.filter(
      (index) => (turns[index]?.sampledEnd ?? Infinity) <= (nearest?.shared ?? 0),
    );
    const branch = shared.length === 0 ? undefined : nearest;
    nodes.push({
      sample,
      parent: branch?.parent ?? null,
      sharedTokens: branch?.shared ?? 0,
      tokens: tokenIds.length,
      sampledTokens: lossMask.reduce((sum, bit) => sum + bit, 0),
      turns: own,
      history: [...shared, ...own],
    });
  }
  return nodes;
}

interface Branch {
  readonly parent: number;
  readonly shared: number;
}

function branchesOf(ids: readonly (readonly number[])[]): Map<number, Branch> {
  const order = ids.map((_, sample) => sample).sort((a, b) => compare(ids[a] ?? [], ids[b] ?? []));
  const sharedWithNext = order.map((sample, place) =>
    sharedPrefix(ids[sample] ?? [], ids[order[place + 1] ?? -1] ?? []),
  );
  const branches = new Map<number, Branch>();
  for (const [place, sample] of order.entries()) {
    let best: Branch | undefined;
    for (const direction of [-1, 1]) {
      let shared = Number.POSITIVE_INFINITY;
      for (let at = place + direction; at >= 0 && at < order.length; at += direction) {
        shared = Math.min(shared, sharedWithNext[direction === 1 ? at - 1 : at] ?? 0);
        if (shared <= (best?.shared ?? 0)) break;
        const other = order[at] ?? 0;
        if (other < sample) {
          best = { parent: other, shared };
          break;
        }
      }
    }
    if (best !== undefined) branches.set(sample, best);
  }
  return branches;
}

function compare(a: readonly number[], b: readonly number[]): number {
  const shared = sharedPrefix(a, b);
  return shared === Math.min(a.length, b.length) ? a.length - b.length : (a[shared] ?? 0) - (b[shared] ?? 0);
}

function sharedPrefix(a: readonly number[], b: readonly number[]): number {
  const most = Math.min(a.length, b.length);
  for (let at = 0; at < most; at++) if (a[at] !== b[at]) return at;
  return most;
}
