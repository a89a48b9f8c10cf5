/** Waiting in a loop that looks at its signal itself. */

import { delay } from "./delay.ts";

/** Resolves after `ms` milliseconds, or at once when the signal aborts: the caller's loop decides what that means. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, { signal });
  } catch (reason) {
    if (!signal.aborted) throw reason;
  }
}
