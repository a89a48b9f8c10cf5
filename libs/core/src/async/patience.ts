/**
 * Deadlines while a person looks at a halted process: what stands at a breakpoint takes as long as its reader, and must not
 * have failed for it when the process goes on.
 */

/** A day. */
const PATIENT_MS = 86_400_000;

let isPatient = false;

/** From now on {@link deadline} and whoever asks {@link allowedMs} allow a day at least, in all of this process. */
export function bePatient(): void {
  isPatient = true;
}

/** How long something may take that is allowed `ms` milliseconds. */
export function allowedMs(ms: number): number {
  return isPatient ? Math.max(ms, PATIENT_MS) : ms;
}
