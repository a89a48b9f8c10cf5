/** A pause for loops that check their signal themselves. */

import { delay } from "./delay.ts";

/** Resolves after `ms` milliseconds, or at once when the signal aborts. It does not throw: the caller's loop checks the signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, { signal });
  } catch (reason) {
    if (!signal.aborted) throw reason;
  }
}
