/**
 * Which K/V rows belong to which token prefix: a radix tree over token ids.
 *
 * K/V of a token is a function of the tokens up to it, so a row may serve every sequence with that prefix: the
 * members of a group, and a session's next turn.
 *
 * P1: a node owns its rows; what a lease covers is locked from its node up to the root and is never evicted.
 * P2: a lease ends exactly at the end of a node: a match inside a node splits it.
 * P3: only leaves without a lock are evicted, the longest unused first. Evicted means recomputed, never wrong.
 */

import type { RowPool } from "./row-pool.ts";

interface Node {
  parent: Node | undefined;
  tokens: Int32Array;
  rows: Int32Array;
  readonly children: Map<number, Node>;
  /** Leases that end at this node or below. */
  locks: number;
  /** Tick of the last lease that covered it. */
  usedAt: number;
}

/** A locked prefix. Give it back with {@link PrefixCache.release}. */
export interface Lease {
  /** Tokens covered. */
  readonly length: number;
  readonly node: Node;
}

/** Freed beyond what was asked for, as a share of the pool, so that a full pool is not scanned at every step. */
const EVICTION_SLACK = 1 / 16;

export class PrefixCache {
  readonly #pool: RowPool;
  readonly #root: Node = newNode(undefined, new Int32Array(0), new Int32Array(0));
  #tick = 0;
  #cachedRows = 0;

  constructor(pool: RowPool) {
    this.#pool = pool;
  }

  /** Rows that the tree owns. */
  get cachedRows(): number {
    return this.#cachedRows;
  }

  /**
   * Locks the longest known prefix of `tokens[0, limit)` and writes its rows to `rows`.
   * @param rows at least `limit` long.
   */
  match(tokens: Int32Array, limit: number, rows: Int32Array): Lease {
    const { node, length } = this.#descend(this.#root, tokens, 0, limit, rows);
    this.#lock(node);
    return { node, length };
  }

  /**
   * Hands the rows of `tokens[lease.length, end)` to the tree and locks them. Where the tree knows these tokens
   * already, its own rows are kept: they are written to `rows`, and the caller's duplicates go back to the pool.
   * @returns the lease that replaces the one given.
   */
  extend(lease: Lease, tokens: Int32Array, end: number, rows: Int32Array): Lease {
    const start = lease.length;
    const own = rows.slice(start, end);
    const { node, length } = this.#descend(lease.node, tokens, start, end, rows);
    for (let i = start; i < length; i++) this.#pool.give(own[i - start]!);
    let last = node;
    if (length < end) {
      last = newNode(node, tokens.slice(length, end), rows.slice(length, end));
      node.children.set(tokens[length]!, last);
      this.#cachedRows += end - length;
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

  /** Gives at least `count` rows back to the pool where enough are unlocked (P3). */
  evict(count: number): void {
    let missing = Math.max(count, Math.ceil(this.#pool.capacity * EVICTION_SLACK));
    while (missing > 0) {
      const leaves = this.#unlockedLeaves();
      if (leaves.length === 0) return;
      leaves.sort((a, b) => a.usedAt - b.usedAt);
      for (const leaf of leaves) {
        if (missing <= 0) return;
        for (const row of leaf.rows) this.#pool.give(row);
        this.#cachedRows -= leaf.rows.length;
        missing -= leaf.rows.length;
        leaf.parent!.children.delete(leaf.tokens[0]!);
      }
    }
  }

  /** Follows the tree below `from` along `tokens[start, end)`, splitting the node in which the match ends (P2). */
  #descend(from: Node, tokens: Int32Array, start: number, end: number, rows: Int32Array) {
    let node = from;
    let length = start;
    while (length < end) {
      const child = node.children.get(tokens[length]!);
      if (child === undefined) break;
      const most = Math.min(child.tokens.length, end - length);
      let shared = 1;
      while (shared < most && child.tokens[shared] === tokens[length + shared]) shared++;
      node = shared < child.tokens.length ? splitNode(child, shared) : child;
      rows.set(node.rows, length);
      length += shared;
    }
    return { node, length };
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

function newNode(parent: Node | undefined, tokens: Int32Array, rows: Int32Array): Node {
  return { parent, tokens, rows, children: new Map(), locks: 0, usedAt: 0 };
}

/** Cuts a node after `count` tokens. The lower part keeps its identity, so leases on it stay valid. @returns the upper part. */
function splitNode(lower: Node, count: number): Node {
  const upper = newNode(lower.parent, lower.tokens.slice(0, count), lower.rows.slice(0, count));
  upper.locks = lower.locks;
  upper.usedAt = lower.usedAt;
  lower.parent!.children.set(upper.tokens[0]!, upper);
  lower.parent = upper;
  lower.tokens = lower.tokens.slice(count);
  lower.rows = lower.rows.slice(count);
  upper.children.set(lower.tokens[0]!, lower);
  return upper;
}
