import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { PAGE_ROWS } from "@hone/nn";
import { PagePool } from "./page-pool.ts";
import { type Lease, PrefixCache } from "./prefix-cache.ts";

/** A sequence that holds pages and checks their rows; each row records the prefix for which it was computed. */
class Holder {
  readonly tokens: Int32Array;
  readonly pages: Int32Array;
  lease: Lease;
  computed: number;
  #ownFrom: number;
  #ownCount = 0;
  readonly #setup: Setup;

  constructor(setup: Setup, tokens: number[]) {
    this.#setup = setup;
    this.tokens = Int32Array.from(tokens);
    this.pages = new Int32Array(Math.ceil(tokens.length / PAGE_ROWS));
    this.lease = setup.cache.match(this.tokens, tokens.length, this.pages);
    this.computed = this.lease.length;
    this.#ownFrom = Math.floor(this.lease.length / PAGE_ROWS);
    this.check();
  }

  compute(): boolean {
    const { pool, cache, contents } = this.#setup;
    const count = this.pages.length - this.#ownFrom;
    const shared = this.pages[this.#ownFrom]!;
    if (count > pool.free) cache.evict(count);
    if (!pool.take(count, this.pages, this.#ownFrom)) return false;
    this.#ownCount = count;
    for (let i = 0; i < this.computed % PAGE_ROWS; i++) {
      contents.set(this.pages[this.#ownFrom]! * PAGE_ROWS + i, contents.get(shared * PAGE_ROWS + i)!);
    }
    for (let i = this.computed; i < this.tokens.length; i++) {
      contents.set(this.#row(i), this.tokens.slice(0, i + 1).join());
    }
    this.computed = this.tokens.length;
    return true;
  }

  share(): void {
    this.lease = this.#setup.cache.extend(this.lease, this.tokens, this.computed, this.pages);
    this.check();
  }

  release(): void {
    for (let i = 0; i < this.#ownCount; i++) this.#setup.pool.release(this.pages[this.#ownFrom + i]!);
    this.#setup.cache.release(this.lease);
  }

  check(): void {
    for (let i = 0; i < this.computed; i++) {
      assert.equal(this.#setup.contents.get(this.#row(i)), this.tokens.slice(0, i + 1).join());
    }
  }

  #row(position: number): number {
    return this.pages[Math.floor(position / PAGE_ROWS)]! * PAGE_ROWS + (position % PAGE_ROWS);
  }
}

function setUp(capacity: number) {
  const pool = new PagePool(capacity);
  return { pool, cache: new PrefixCache(pool), contents: new Map<number, string>() };
}
type Setup = ReturnType<typeof setUp>;

const tokens = (length: number, first = 1) => [first, ...Array.from({ length: length - 1 }, (_, i) => i % 5)];

describe("PrefixCache", () => {
  test("finds the longest known prefix, also if it ends inside a node and inside a page", () => {
    const setup = setUp(100);
    const first = new Holder(setup, tokens(40));
    assert.equal(first.lease.length, 0);
    first.compute();
    first.share();
    assert.equal(new Holder(setup, [...tokens(33), 9]).lease.length, 33);
    assert.equal(new Holder(setup, [...tokens(32), 9]).lease.length, 32);
    assert.equal(new Holder(setup, [...tokens(40), 6]).lease.length, 40);
    assert.equal(new Holder(setup, [2]).lease.length, 0);
    first.check();
  });

  test("keeps one copy when two sequences computed the same tokens", () => {
    const setup = setUp(100);
    const [a, b] = [new Holder(setup, tokens(48)), new Holder(setup, tokens(60))];
    for (const holder of [a, b]) {
      holder.compute();
      holder.share();
    }
    a.release();
    b.release();
    assert.equal(setup.pool.free, 99 - Math.ceil(60 / PAGE_ROWS));
    const later = new Holder(setup, tokens(60));
    assert.equal(later.lease.length, 60);
  });

  test("evicts the prefixes that were unused longest, leaves first, and never leased ones", () => {
    const setup = setUp(10);
    const holders = [1, 2, 3].map((first) => new Holder(setup, tokens(3 * PAGE_ROWS, first)));
    for (const holder of holders) {
      holder.compute();
      holder.share();
    }
    const [old, recent, held] = holders as [Holder, Holder, Holder];
    old.release();
    recent.release();
    assert.equal(setup.pool.free, 0);
    setup.cache.evict(2);
    assert.equal(setup.pool.free, 3);
    const again = new Holder(setup, tokens(3 * PAGE_ROWS, 2));
    assert.equal(again.lease.length, 3 * PAGE_ROWS);
    again.release();
    setup.cache.evict(9);
    assert.equal(setup.pool.free, 6);
    held.check();
  });

  test("refuses to allocate rather than evict a prefix in use", () => {
    const setup = setUp(3);
    const held = new Holder(setup, tokens(2 * PAGE_ROWS));
    assert.ok(held.compute());
    held.share();
    assert.ok(!new Holder(setup, tokens(5, 7)).compute());
    held.check();
  });

  test("never gives a row of other tokens and loses no page, whatever the order of operations is", () => {
    const random = new Random(11);
    const setup = setUp(60);
    let held: Holder[] = [];
    for (let round = 0; round < 3_000; round++) {
      if (held.length < 8) {
        // A few distinct prefixes, which can differ from any position on.
        const length = 1 + random.nextInt(4 * PAGE_ROWS);
        const parts = random.nextInt(length);
        const holder = new Holder(
          setup,
          Array.from({ length }, (_, i) => (i < parts ? 0 : random.nextInt(2))),
        );
        assert.ok(holder.compute());
        holder.share();
        held.push(holder);
      } else {
        const leaving = random.pick(held);
        leaving.release();
        held = held.filter((holder) => holder !== leaving);
      }
      if (round % 50 === 0) for (const holder of held) holder.check();
    }
    for (const holder of held) holder.release();
    setup.cache.evict(59);
    assert.equal(setup.pool.free, 59);
  });
});
