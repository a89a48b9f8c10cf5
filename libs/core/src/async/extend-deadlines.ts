/**
 * Longer deadlines for debugging: while a person looks at a process that is halted at a breakpoint, its deadlines must not
 * pass.
 */

/** A day: longer than a debugging session. */
const EXTENDED_MS = 86_400_000;

let isExtended = false;

/** From now on {@link deadline} and all callers of {@link allowedMs} in this process allow at least a day. */
export function extendDeadlines(): void {
  isExtended = true;
}

/** @returns the time limit that holds for something with a limit of `ms`: `ms` itself, or at least a day after {@link extendDeadlines}. */
export function allowedMs(ms: number): number {
  return isExtended ? Math.max(ms, EXTENDED_MS) : ms;
}
