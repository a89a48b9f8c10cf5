/**
 * A model without weights, for tests of the code around a model: the K/V of a token is a hash of the K/V before it and
 * the token, and the logits are a hash of the last K/V. A row that is lost, mixed up or taken from another prefix
 * changes every token after it.
 */

import assert from "node:assert/strict";
import { PAGE_ROWS } from "@hone/nn";
import type { PolicyLimits, PolicyRunner, RunItem, RunOutput } from "../policy-runner.ts";

export interface HashRunnerOptions {
  readonly pageCapacity?: number;
  readonly vocabularySize?: number;
  readonly maxContextTokens?: number;
  /** Other weights give other hashes. */
  readonly salt?: number;
  /** Awaited before each run. */
  readonly beforeRun?: (items: readonly RunItem[]) => Promise<void> | void;
}

export class HashRunner implements PolicyRunner {
  readonly limits: PolicyLimits;
  readonly pageCapacity: number;
  readonly runs: { readonly tokens: number; readonly sequences: number }[] = [];
  isDisposed = false;
  readonly #rows: Int32Array;
  readonly #options: HashRunnerOptions;

  constructor(options: HashRunnerOptions = {}) {
    const { pageCapacity = 1_000, vocabularySize = 16, maxContextTokens = 256 } = options;
    this.#options = options;
    this.limits = { vocabularySize, maxContextTokens };
    this.pageCapacity = pageCapacity;
    this.#rows = new Int32Array(pageCapacity * PAGE_ROWS);
  }

  async run(items: readonly RunItem[]): Promise<RunOutput> {
    await this.#options.beforeRun?.(items);
    this.runs.push({
      tokens: items.reduce((sum, item) => sum + item.count, 0),
      sequences: items.length,
    });
    const wanting = items.filter((item) => item.wantsLogits).length;
    const logits = new Float32Array(wanting * this.limits.vocabularySize);
    // Written after all items are computed, as no item may see the rows of another one of its run.
    const written: [number, number][] = [];
    let at = 0;
    for (const { tokenIds, pages, start, count, wantsLogits } of items) {
      const rowOf = (i: number) => pages[Math.floor(i / PAGE_ROWS)]! * PAGE_ROWS + (i % PAGE_ROWS);
      let state = start === 0 ? (this.#options.salt ?? 0) : this.#rows[rowOf(start - 1)]!;
      for (let i = 0; i < start; i++) {
        // The whole context is read, as attention reads it.
        assert.notEqual(this.#rows[rowOf(i)], 0, `row ${i} was never written`);
      }
      for (let i = start; i < start + count; i++) {
        state = mix(state, tokenIds[i]! + 1);
        written.push([rowOf(i), state]);
      }
      for (let id = 0; wantsLogits && id < this.limits.vocabularySize; id++) {
        logits[at++] = (mix(state, -id - 1) & 0xffff) / 0x8000;
      }
    }
    for (const [row, state] of written) this.#rows[row] = state;
    return { logits, masses: undefined, broken: [] };
  }

  copyRows(fromPage: number, toPage: number, count: number): void {
    this.#rows.copyWithin(toPage * PAGE_ROWS, fromPage * PAGE_ROWS, fromPage * PAGE_ROWS + count);
  }

  copyPages(source: PolicyRunner, from: Int32Array, to: Int32Array): void {
    assert.ok(source instanceof HashRunner);
    for (const [index, page] of from.entries()) {
      const rows = source.#rows.subarray(page * PAGE_ROWS, (page + 1) * PAGE_ROWS);
      this.#rows.set(rows, to[index]! * PAGE_ROWS);
    }
  }

  async dispose(): Promise<void> {
    this.isDisposed = true;
  }
}

function mix(state: number, value: number): number {
  let x = Math.imul(state ^ Math.imul(value, 0x9e3779b1), 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return x ^ (x >>> 16);
}
