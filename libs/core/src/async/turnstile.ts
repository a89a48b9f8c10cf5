/**
 * Many waits that end at the same moment, let through one by one.
 *
 * When thousands of timers expire together, Node runs what follows each of them before it looks at a socket or another
 * timer again: seconds in which a process says and hears nothing, and is taken for dead. Behind a turnstile each goes on in a
 * turn of the event loop of its own, in the order of arrival.
 */

export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  #isTurning = false;

  /** Resolves in a turn of the event loop in which nobody else is let through. */
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
