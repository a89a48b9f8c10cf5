/**
 * An engine whose sequences share it: with b of them under way a decoding step takes `baseMs + b * perSequenceMs` and gives a
 * token to each. That is how continuous batching works: reading the weights costs the same for any number of sequences, and the
 * computation grows with it.
 */

import TinyQueue from "tinyqueue";

export interface EngineSpeed {
  /** Time of a decoding step that does not depend on the number of sequences, in milliseconds. */
  readonly baseMs: number;
  /** Time that each sequence adds to a step. */
  readonly perSequenceMs: number;
}

export interface Sequence {
  /** The engine's {@link SharedEngine.#work} at which it has all of its tokens. */
  readonly until: number;
  readonly onDone: () => void;
  isRemoved: boolean;
}

export class SharedEngine {
  readonly #speed: EngineSpeed;
  readonly #sequences = new TinyQueue<Sequence>([], (a, b) => a.until - b.until);
  #running = 0;
  /** Tokens that a sequence has which was there from the beginning. */
  #work = 0;
  #atMs = 0;
  #share = 1;
  #idleMs = 0;

  constructor(speed: EngineSpeed) {
    this.#speed = speed;
  }

  get running(): number {
    return this.#running;
  }

  /** How long it had no sequence, until now. */
  idleMs(nowMs: number): number {
    this.#advance(nowMs);
    return this.#idleMs;
  }

  /** Sets which share of its speed it has: 0 while it loads weights, less than 1 while training uses the same machine. */
  setShare(nowMs: number, share: number): void {
    this.#advance(nowMs);
    this.#share = share;
  }

  /** Starts a sequence; `onDone` is called once it has its tokens. */
  add(nowMs: number, tokens: number, onDone: () => void): Sequence {
    this.#advance(nowMs);
    const sequence = { until: this.#work + tokens, onDone, isRemoved: false };
    this.#sequences.push(sequence);
    this.#running++;
    return sequence;
  }

  remove(nowMs: number, sequence: Sequence): void {
    if (sequence.isRemoved) return;
    this.#advance(nowMs);
    sequence.isRemoved = true;
    this.#running--;
  }

  /** When the next sequence has its tokens if none joins or leaves before; Infinity = never. */
  nextDoneMs(): number {
    const first = this.#first();
    if (first === undefined || this.#share === 0) return Number.POSITIVE_INFINITY;
    return this.#atMs + Math.max(0, first.until - this.#work) / this.#tokensPerMs();
  }

  /** Ends the sequence that has its tokens. */
  finishFirst(nowMs: number): void {
    this.#advance(nowMs);
    const first = this.#first();
    if (first === undefined) return;
    this.#sequences.pop();
    first.isRemoved = true;
    this.#running--;
    first.onDone();
  }

  #first(): Sequence | undefined {
    while (this.#sequences.peek()?.isRemoved === true) this.#sequences.pop();
    return this.#sequences.peek();
  }

  #tokensPerMs(): number {
    const { baseMs, perSequenceMs } = this.#speed;
    return this.#share / (baseMs + this.#running * perSequenceMs);
  }

  #advance(nowMs: number): void {
    const elapsed = nowMs - this.#atMs;
    if (this.#running === 0) this.#idleMs += elapsed;
    else this.#work += elapsed * this.#tokensPerMs();
    this.#atMs = nowMs;
  }
}
