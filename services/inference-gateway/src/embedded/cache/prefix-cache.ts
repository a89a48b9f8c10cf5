/**
 * A radix tree over token ids, with the K/V pages of each token prefix.
 *
 * The K/V of a token depends only on the tokens up to it, so every sequence with that prefix can use the page: the
 * members of a group, and a session's next turn. Prefixes end anywhere, pages at multiples of PAGE_ROWS.
 *
 * P1: a node holds the pages of its tokens. Where it begins inside a page, that page also has the rows of the
 *     positions before it, so of all pages on a path the deepest one of each place is complete.
 * P2: what a lease covers is locked from its node up to the root and is never evicted.
 * P3: a lease ends exactly at the end of a node: a match inside a node splits it.
 * P4: rows of a page beyond what its nodes cover may still be written by the sequence that computed them; who starts
 *     from a prefix that ends inside a page copies the rows it needs.
 * P5: only leaves without a lock are evicted, the longest unused first. Evicted means recomputed, never wrong.
 */

import { PAGE_ROWS } from "@hone/nn";
import type { PagePool } from "./page-pool.ts";

interface Node {
  parent: Node | undefined;
  /** Position of its first token. */
  start: number;
  tokens: Int32Array;
  /** From the page of its first token to that of its last. */
  pages: Int32Array;
  readonly children: Map<number, Node>;
  /** Number of leases that end at this node or below it. */
  locks: number;
  /** Tick of the last lease that covered it. */
  usedAt: number;
}

/** A locked prefix, which {@link PrefixCache.release} unlocks. */
export interface Lease {
  /** Tokens covered. */
  readonly length: number;
  readonly node: Node;
}

/** Share of the pool that an eviction frees in addition, so that a full pool is not scanned at every step. */
const EVICTION_SLACK = 1 / 16;

export class PrefixCache {
  readonly #pool: PagePool;
  readonly #root: Node = newNode(undefined, 0, new Int32Array(0), new Int32Array(0));
  #tick = 0;

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  /**
   * Locks the longest known prefix of `tokens[0, limit)` and writes its pages to `pages`.
   * @param pages long enough for `limit` tokens.
   */
  match(tokens: Int32Array, limit: number, pages: Int32Array): Lease {
    const { node, length } = this.#descend(this.#root, tokens, 0, limit, pages);
    this.#lock(node);
    return { node, length };
  }

  /**
   * Keeps the pages of `tokens[lease.length, end)` and locks them; of what the tree knows already, its own stay.
   * @param pages of the caller, complete from the page of `lease.length` on.
   * @returns the lease that replaces the one given.
   */
  extend(lease: Lease, tokens: Int32Array, end: number, pages: Int32Array): Lease {
    if (end === lease.length) return lease;
    const { node, length } = this.#descend(lease.node, tokens, lease.length, end);
    let last = node;
    if (length < end) {
      const own = pages.slice(pageOf(length), pageOf(end - 1) + 1);
      for (const page of own) this.#pool.hold(page);
      last = newNode(node, length, tokens.slice(length, end), own);
      node.children.set(tokens[length]!, last);
    }
    this.#lock(last, lease.node);
    return { node: last, length: end };
  }

  release(lease: Lease): void {
    const tick = ++this.#tick;
    for (let node: Node | undefined = lease.node; node !== undefined; node = node.parent) {
      node.locks--;
      node.usedAt = tick;
    }
  }

  /** Evicts until `count` pages are free, and some more, or nothing unlocked is left (P5). */
  evict(count: number): void {
    const wanted = count + Math.ceil(this.#pool.capacity * EVICTION_SLACK);
    while (this.#pool.free < wanted) {
      const leaves = this.#unlockedLeaves();
      if (leaves.length === 0) return;
      leaves.sort((a, b) => a.usedAt - b.usedAt);
      for (const leaf of leaves) {
        if (this.#pool.free >= wanted) return;
        for (const page of leaf.pages) this.#pool.release(page);
        leaf.parent!.children.delete(leaf.tokens[0]!);
      }
    }
  }

  /** Follows the tree below `from` along `tokens[start, end)`, splitting the node in which the match ends (P3). */
  #descend(from: Node, tokens: Int32Array, start: number, end: number, pages?: Int32Array) {
    let node = from;
    let length = start;
    while (length < end) {
      const child = node.children.get(tokens[length]!);
      if (child === undefined) break;
      const most = Math.min(child.tokens.length, end - length);
      let shared = 1;
      while (shared < most && child.tokens[shared] === tokens[length + shared]) shared++;
      node = shared < child.tokens.length ? this.#split(child, shared) : child;
      pages?.set(node.pages, pageOf(length)); // P1: the deeper page of a place replaces the one above
      length += shared;
    }
    return { node, length };
  }

  /** Cuts a node after `count` tokens. The lower part keeps its identity, so leases on it stay valid. @returns the upper part. */
  #split(lower: Node, count: number): Node {
    const { start, tokens, pages } = lower;
    const middle = start + count;
    const first = pageOf(start);
    const upper = newNode(
      lower.parent,
      start,
      tokens.slice(0, count),
      pages.slice(0, pageOf(middle - 1) - first + 1),
    );
    if (middle % PAGE_ROWS !== 0) this.#pool.hold(upper.pages.at(-1)!); // both parts hold it now
    upper.locks = lower.locks;
    upper.usedAt = lower.usedAt;
    lower.parent!.children.set(tokens[0]!, upper);
    lower.parent = upper;
    lower.start = middle;
    lower.tokens = tokens.slice(count);
    lower.pages = pages.slice(pageOf(middle) - first);
    upper.children.set(lower.tokens[0]!, lower);
    return upper;
  }

  /** Adds a lock from `node` up to `above`, which is left out; without it, up to the root. */
  #lock(node: Node, above?: Node): void {
    for (let current: Node | undefined = node; current !== above && current !== undefined; ) {
      current.locks++;
      current = current.parent;
    }
  }

  #unlockedLeaves(): Node[] {
    const leaves: Node[] = [];
    const stack = [...this.#root.children.values()];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.children.size > 0) stack.push(...node.children.values());
      else if (node.locks === 0) leaves.push(node);
    }
    return leaves;
  }
}

function newNode(parent: Node | undefined, start: number, tokens: Int32Array, pages: Int32Array): Node {
  return { parent, start, tokens, pages, children: new Map(), locks: 0, usedAt: 0 };
}

/** Which of a sequence's pages holds a position. */
function pageOf(position: number): number {
  return Math.floor(position / PAGE_ROWS);
}
