/**
 * Takes turns where the sequences that decode do not fit in one run.
 *
 * A runner that keeps the contexts of a run in slots (context-slots.ts) has to fill them anew when another run's sequences come. So one
 * run decodes for several steps before the next one does. This decides only when tokens are computed, and so changes no sample.
 *
 * D1: a turn ends after its steps, or with its last sequence. Runs are made of its sequences first ({@link DecodeTurns.isItsTurn}), so that they stay
 *     together although their contexts grow and the others' do not. Room that is left is for others.
 * D2: the next turn is that of the run with the sequence that has waited longest.
 */

/** A part of a run. */
export interface DecodingItem {
  readonly sequence: object;
}

export class DecodeTurns {
  readonly #steps: number;
  /** The step in which a sequence decoded last; for one that has just come, that before the last. */
  readonly #decodedAt = new WeakMap<object, number>();
  #step = 0;
  #turnBegan = 0;

  /** @param steps of a turn; with 1 all runs are computed in each step. */
  constructor(steps: number) {
    this.#steps = steps;
  }

  /** Whether a sequence belongs to the turn that goes on. */
  isItsTurn(sequence: object): boolean {
    return this.#steps > 1 && !this.#isOver && this.#decodedAt.get(sequence) === this.#step;
  }

  /** @param runs the decoding runs of a step. @returns those that are to be computed. */
  choose<R extends readonly DecodingItem[]>(runs: readonly R[]): readonly R[] {
    if (runs.length <= 1 || this.#steps === 1) return runs;
    const last = this.#step;
    for (const { sequence } of runs.flat()) {
      if (!this.#decodedAt.has(sequence)) this.#decodedAt.set(sequence, last - 1);
    }
    const timesOf = (run: R) => run.map(({ sequence }) => this.#decodedAt.get(sequence)!);
    const going = (run: R) => timesOf(run).filter((at) => at === last).length;
    const latest = largest(runs, going);
    const isOver = this.#isOver || going(latest) === 0; // D1
    const chosen = isOver ? largest(runs, (run) => -Math.min(...timesOf(run))) : latest; // D2
    if (isOver) this.#turnBegan = last;
    this.#step++;
    for (const { sequence } of chosen) this.#decodedAt.set(sequence, this.#step);
    return [chosen];
  }

  get #isOver(): boolean {
    return this.#step - this.#turnBegan >= this.#steps;
  }
}

function largest<R>(runs: readonly R[], sizeOf: (run: R) => number): R {
  return runs.reduce((most, run) => (sizeOf(run) > sizeOf(most) ? run : most));
}
