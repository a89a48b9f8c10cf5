import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { type Lease, PrefixCache } from "./prefix-cache.ts";
import { RowPool } from "./row-pool.ts";

/** A sequence that owns rows and remembers which tokens each row was computed for. */
class Holder {
  readonly tokens: Int32Array;
  readonly rows: Int32Array;
  lease: Lease;
  computed: number;
  readonly #cache: PrefixCache;
  readonly #pool: RowPool;
  readonly #contents: Map<number, string>;

  constructor(cache: PrefixCache, pool: RowPool, contents: Map<number, string>, tokens: number[]) {
    this.#cache = cache;
    this.#pool = pool;
    this.#contents = contents;
    this.tokens = Int32Array.from(tokens);
    this.rows = new Int32Array(tokens.length);
    this.lease = cache.match(this.tokens, tokens.length, this.rows);
    this.computed = this.lease.length;
    this.check();
  }

  compute(): boolean {
    const missing = this.tokens.length - this.computed;
    if (missing > this.#pool.free) this.#cache.evict(missing - this.#pool.free);
    if (!this.#pool.take(missing, this.rows, this.computed)) return false;
    for (let i = this.computed; i < this.tokens.length; i++) {
      this.#contents.set(this.rows[i]!, this.tokens.slice(0, i + 1).join());
    }
    this.computed = this.tokens.length;
    return true;
  }

  share(): void {
    this.lease = this.#cache.extend(this.lease, this.tokens, this.computed, this.rows);
    this.check();
  }

  release(): void {
    this.#cache.release(this.lease);
  }

  check(): void {
    for (let i = 0; i < this.computed; i++) {
      assert.equal(this.#contents.get(this.rows[i]!), this.tokens.slice(0, i + 1).join());
    }
  }
}

function setUp(capacity: number) {
  const pool = new RowPool(capacity);
  const cache = new PrefixCache(pool);
  const contents = new Map<number, string>();
  return { pool, cache, hold: (tokens: number[]) => new Holder(cache, pool, contents, tokens) };
}

describe("PrefixCache", () => {
  test("serves the longest known prefix and splits a node inside which it ends", () => {
    const { cache, hold } = setUp(100);
    const first = hold([1, 2, 3, 4, 5]);
    assert.equal(first.lease.length, 0);
    first.compute();
    first.share();
    assert.equal(cache.cachedRows, 5);
    assert.equal(hold([1, 2, 3, 9]).lease.length, 3);
    assert.equal(hold([1, 2, 3, 4, 5, 6]).lease.length, 5);
    assert.equal(hold([2]).lease.length, 0);
    first.check();
  });

  test("keeps one copy when two sequences computed the same tokens", () => {
    const { cache, pool, hold } = setUp(100);
    const [a, b] = [hold([1, 2, 3]), hold([1, 2, 3, 4])];
    a.compute();
    b.compute();
    a.share();
    b.share();
    assert.equal(cache.cachedRows, 4);
    assert.equal(pool.free, 99 - 4);
    assert.deepEqual(a.rows, b.rows.slice(0, 3));
  });

  test("evicts what was unused longest, leaves first, and never what is leased", () => {
    const { pool, hold, cache } = setUp(17);
    const old = hold([1, 2, 3, 4]);
    const recent = hold([5, 6, 7, 8]);
    const held = hold([9, 10, 11, 12]);
    for (const holder of [old, recent, held]) {
      holder.compute();
      holder.share();
    }
    old.release();
    recent.release();
    assert.equal(pool.free, 4);
    cache.evict(4);
    assert.equal(pool.free, 8);
    const again = hold([5, 6, 7, 8]);
    assert.equal(again.lease.length, 4);
    again.release();
    cache.evict(16);
    assert.equal(pool.free, 12);
    held.check();
    assert.equal(cache.cachedRows, 4);
  });

  test("says no rather than evicting what is in use", () => {
    const { hold } = setUp(5);
    const held = hold([1, 2, 3]);
    assert.ok(held.compute());
    held.share();
    assert.ok(!hold([4, 5]).compute());
    held.check();
  });

  test("never serves a row of other tokens and loses none, whatever the order of operations", () => {
    const random = new Random(11);
    const { pool, cache, hold } = setUp(200);
    let held: Holder[] = [];
    for (let round = 0; round < 3_000; round++) {
      if (held.length < 8) {
        const length = 1 + random.nextInt(20);
        const holder = hold(Array.from({ length }, () => random.nextInt(2)));
        assert.ok(holder.compute());
        holder.share();
        held.push(holder);
      } else {
        const leaving = random.pick(held);
        leaving.release();
        held = held.filter((holder) => holder !== leaving);
      }
      if (round % 100 === 0) for (const holder of held) holder.check();
      assert.equal(pool.free + cache.cachedRows, 199);
    }
    for (const holder of held) holder.release();
    cache.evict(199);
    assert.equal(pool.free, 199);
    assert.equal(cache.cachedRows, 0);
  });
});
