/** The parts that gradings by tests and by programs have in common. */

export interface GradeOptions {
  readonly timeMs: number;
  /** Whether all tests must pass, so that the grading stops at the first failure. */
  readonly isAll: boolean;
  readonly signal: AbortSignal;
}

/** A whole grading may take this many times the time of one test; tests that it does not reach have failed. */
const MAX_TESTS_TIME = 10;

/** Counts the passed and failed tests of one answer. */
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

  /** Why the first failed test failed. */
  get reason(): string | undefined {
    const isCutShort = this.#numGraded < this.#count;
    return this.#reason ?? (isCutShort ? "there was not enough time for all tests" : undefined);
  }

  /** Index of the next test. */
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

  /** Starts the time of a test; the caller must call `stop`. */
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
