/**
 * Chooses the tokens that one engine step computes, and groups them into runs.
 *
 * Decoding sequences come first, with one token each. Prefills fill the rest of the token budget in the order of arrival. A prefill
 * that does not fit is the first of the next step, as splitting it would need another run for the rest; only a step's first
 * prefill is split. A prefill waits if most of its missing tokens are those that another one computes in the same step:
 * in the next step it gets them from the prefix cache. So a group's prompt is computed once.
 *
 * None of this can change a sample (G1), as it decides only when rows are computed.
 */

import { contextRoom } from "./context-room.ts";
import type { DecodeTurns } from "./decode-turns.ts";
import type { RunCost, RunItem } from "./policy-runner.ts";
import type { Sequence } from "./sequence.ts";

/** A sequence with the number of its tokens to compute in this step. */
export interface PlannedWork {
  readonly sequence: Sequence;
  readonly count: number;
}

/** A prefill waits for another one when at least this share of its missing tokens is common to both. */
const SHARED_PREFILL_SHARE = 0.5;

/**
 * @param maxTokens most tokens of the whole step.
 * @param maxPrefillTokens most tokens of all its prefills.
 * @param maxSequenceTokens most tokens of one prefill.
 */
export function planStep(
  running: readonly Sequence[],
  maxTokens: number,
  maxPrefillTokens = Number.POSITIVE_INFINITY,
  maxSequenceTokens = Number.POSITIVE_INFINITY,
): PlannedWork[] {
  const work: PlannedWork[] = [];
  let budget = maxTokens;
  for (const sequence of running) {
    if (sequence.pending === 1 && budget > 0) {
      work.push({ sequence, count: 1 });
      budget--;
    }
  }
  budget = Math.min(budget, maxPrefillTokens);
  const claims = new Map<unknown, Sequence[]>();
  for (const sequence of running) {
    if (budget === 0) break;
    if (sequence.pending === 1) continue;
    // Only prefills at the same node of the prefix tree can share their next tokens.
    const key = sequence.lease?.length === sequence.computed ? sequence.lease.node : sequence;
    const others = claims.get(key) ?? [];
    if (others.some((other) => sharesMost(sequence, other))) continue;
    const wanted = Math.min(sequence.pending, maxSequenceTokens);
    if (wanted > budget && claims.size > 0) break;
    claims.set(key, [...others, sequence]);
    const count = Math.min(wanted, budget);
    work.push({ sequence, count });
    budget -= count;
  }
  return work;
}

/** Whether most of the missing tokens of `sequence` are also the next ones of `other`. Both have the same prefix. */
function sharesMost(sequence: Sequence, other: Sequence): boolean {
  const start = sequence.computed;
  // Each sequence computes its last token itself, for the logits.
  const wanted = Math.max(1, Math.ceil((sequence.pending - 1) * SHARED_PREFILL_SHARE));
  const end = start + wanted;
  if (other.length < end) return false;
  for (let i = start; i < end; i++) if (sequence.tokenIds[i] !== other.tokenIds[i]) return false;
  return true;
}

/** The runs of a step. Items that decode may have to wait for a later step, until it is the turn of their run. */
export function runsOfStep<T extends GroupedItem & { readonly sequence: object }>(
  items: readonly T[],
  cost: RunCost,
  turns: DecodeTurns,
): T[][] {
  const runs = groupRuns(items, cost, ({ sequence }) => turns.isItsTurn(sequence));
  const isDecoding = (run: readonly T[]) => run.every(({ count }) => count === 1);
  return [...turns.choose(runs.filter(isDecoding)), ...runs.filter((run) => !isDecoding(run))];
}

type GroupedItem = Pick<RunItem, "start" | "count" | "tokenIds">;

/**
 * Groups items into runs so that padding costs less than more runs would. Each item is in one run, in any order.
 * @param isFirst which items are in the first runs of those with as many new tokens. @default those with short contexts
 */
export function groupRuns<T extends GroupedItem>(
  items: readonly T[],
  cost: RunCost,
  isFirst: (item: T) => boolean = () => false,
): T[][] {
  const ordered = [...items].sort(
    (a, b) => a.count - b.count || Number(isFirst(b)) - Number(isFirst(a)) || contextOf(a) - contextOf(b),
  );
  const groups: T[][] = [];
  let group: T[] = [];
  let longest = 0;
  let newTokens = 0;
  for (const item of ordered) {
    const context = contextRoom(item, cost.isExact ?? false);
    const joined = Math.max(longest, context);
    const last = group.at(-1);
    if (last !== undefined) {
      const together = attentionCost(group.length + 1, item.count, joined, cost);
      const apart =
        attentionCost(group.length, last.count, longest, cost) +
        attentionCost(1, item.count, context, cost) +
        cost.perRun;
      const isTooLarge =
        (group.length + 1) * joined > cost.maxContextRows ||
        newTokens + item.count > (cost.maxNewTokens ?? Number.POSITIVE_INFINITY);
      if (together > apart || isTooLarge) {
        groups.push(group);
        group = [];
        longest = 0;
        newTokens = 0;
      }
    }
    group.push(item);
    newTokens += item.count;
    longest = Math.max(longest, context);
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

function contextOf(item: Pick<RunItem, "start" | "count">): number {
  return item.start + item.count;
}

function attentionCost(size: number, newTokens: number, context: number, cost: RunCost): number {
  return size * context * (cost.perContextRow + newTokens * cost.perAttention);
}
