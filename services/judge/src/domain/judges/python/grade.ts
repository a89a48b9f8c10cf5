/** What gradings by tests and by programs have in common. */

export interface GradeOptions {
  readonly timeMs: number;
  /** Stop at the first test that fails. */
  readonly isAll: boolean;
  readonly signal: AbortSignal;
}

/** A grading as a whole takes no longer than so many times one test may; the tests that it does not reach fail. */
const MAX_TESTS_TIME = 10;

/** The tests of one answer as they pass and fail. */
export class Grades {
  readonly #options: GradeOptions;
  readonly #count: number;
  #numPassed = 0;
  #numGraded = 0;
  #spentMs = 0;
  #reason: string | undefined;

  constructor(count: number, options: GradeOptions) {
    this.#count = count;
    this.#options = options;
  }

  get share(): number {
    return this.#numPassed / this.#count;
  }

  /** Why the first one failed. */
  get reason(): string | undefined {
    const isCutShort = this.#numGraded < this.#count;
    return this.#reason ?? (isCutShort ? "no time was left for all of the tests" : undefined);
  }

  /** The test that comes next. */
  get next(): number {
    return this.#numGraded;
  }

  get isDone(): boolean {
    if (this.#numGraded === this.#count) return true;
    if (this.#options.isAll && this.#numPassed < this.#numGraded) return true;
    return this.#spentMs >= MAX_TESTS_TIME * this.#options.timeMs;
  }

  pass(): void {
    this.#numPassed++;
    this.#numGraded++;
  }

  fail(reason: string): void {
    this.#numGraded++;
    this.#reason ??= `test ${this.#numGraded} of ${this.#count}: ${reason}`;
  }

  /** Gives a test its time; ended by `stop`. */
  startClock(): Clock {
    const begin = performance.now();
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), this.#options.timeMs);
    return {
      signal: AbortSignal.any([over.signal, this.#options.signal]),
      isOver: () => over.signal.aborted && !this.#options.signal.aborted,
      stop: () => {
        clearTimeout(timer);
        this.#spentMs += performance.now() - begin;
      },
    };
  }
}

export interface Clock {
  readonly signal: AbortSignal;
  isOver(): boolean;
  stop(): void;
}
