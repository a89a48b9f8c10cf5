/**
 * Finds what sequences of a run have in common: the full pages that their page tables begin with, as those of a group's samples do.
 *
 * Slots keep such rows once for all of them (slot-contexts.ts).
 */

import { PAGE_ROWS } from "@hone/nn";
import type { RunItem } from "../policy-runner.ts";

/** The first rows of some sequences. The pages of each begin with these, so the pool keeps them while one of the sequences runs. */
export interface Prefix {
  readonly pages: Int32Array;
  /** Rows of all pages together. */
  readonly start: number;
}

export type PrefixItem = Pick<RunItem, "pages" | "start">;

/** Shorter ones are not worth a product of their own. */
const MIN_PAGES = 2;
/**
 * Most sequences that share a copy of a prefix. All prefixes of a run are computed as if they had as many sequences as the one with
 * most, and more save little memory traffic.
 */
export const MAX_MEMBERS = 8;

/**
 * Chooses the prefix of a sequence that comes to a run: what it shares with the sequence that it shares most with.
 *
 * @param others all other sequences of the run.
 * @param members how many of them read each prefix.
 */
export function choosePrefix(
  item: PrefixItem,
  others: readonly PrefixItem[],
  members: ReadonlyMap<Prefix, number>,
): Prefix | undefined {
  const pages = others.reduce((most, other) => Math.max(most, sharedPages(item, other)), 0);
  if (pages < MIN_PAGES) return undefined;
  const known = [...members].find(
    ([prefix, count]) =>
      count < MAX_MEMBERS && prefix.pages.length === pages && beginsWith(item.pages, prefix.pages),
  );
  return known?.[0] ?? { pages: item.pages.slice(0, pages), start: pages * PAGE_ROWS };
}

/** Whether a page table begins with these pages. */
export function beginsWith(pages: Int32Array, begin: Int32Array): boolean {
  return begin.every((page, index) => page === pages[index]);
}

/** The number of leading pages, all of whose rows are known, that two sequences have in common. */
function sharedPages(a: PrefixItem, b: PrefixItem): number {
  const most = Math.floor(Math.min(a.start, b.start) / PAGE_ROWS);
  let pages = 0;
  while (pages < most && a.pages[pages] === b.pages[pages]) pages++;
  return pages;
}
