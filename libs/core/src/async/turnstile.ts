/**
 * Spreads many waits that end at the same moment over several turns of the event loop.
 *
 * When thousands of timers expire together, Node runs the work after each of them before it serves a socket or another
 * timer again. The process then does not answer for seconds, and others take it for dead. With a turnstile each wait
 * continues in its own turn of the event loop, in the order of arrival.
 */

export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  #isTurning = false;

  /** Resolves in a turn of the event loop in which no other caller of `pass` continues. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isTurning) return;
      this.#isTurning = true;
      setImmediate(this.#turn);
    });
  }

  readonly #turn = (): void => {
    this.#waiting.shift()?.();
    this.#isTurning = this.#waiting.length > 0;
    if (this.#isTurning) setImmediate(this.#turn);
  };
}
