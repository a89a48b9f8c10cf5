/**
 * Notices processes that run but do not answer: stopped, hanging or starved. They are told of, never ended: what is
 * stopped may go on, and a supervisor that kills on a guess loses work.
 */

import { pause } from "@hone/core";

/** With the two seconds that an answer may take, silence is known within five. */
const LOOK_EVERY_MS = 3_000;

/** Asks a part; false when it does not answer. */
export type Probe = () => Promise<boolean>;

export interface AnswerWatchOptions {
  /** The parts that should answer now, by name; asked for at every look, as processes come and go. */
  readonly probes: () => Readonly<Record<string, Probe>>;
  /** Told after each change: since when (Unix milliseconds) which parts do not answer. */
  readonly onChange: (silent: Readonly<Record<string, number>>) => void;
  readonly signal: AbortSignal;
  /** @default 3_000 */
  readonly lookEveryMs?: number;
}

/** Watches until the signal aborts; resolves then. */
export async function watchAnswers(options: AnswerWatchOptions): Promise<void> {
  const { probes, onChange, signal, lookEveryMs = LOOK_EVERY_MS } = options;
  const lastAnswerMs = new Map<string, number>();
  let told = "{}";
  while (!signal.aborted) {
    const startedMs = Date.now();
    const asked = await Promise.all(
      Object.entries(probes()).map(async ([name, probe]) => ({ name, isThere: await probe() })),
    );
    const silent: Record<string, number> = {};
    for (const { name, isThere } of asked) {
      // Never heard of yet: silent since it was first asked.
      if (isThere || !lastAnswerMs.has(name)) lastAnswerMs.set(name, isThere ? Date.now() : startedMs);
      if (!isThere) silent[name] = lastAnswerMs.get(name) ?? startedMs;
    }
    const text = JSON.stringify(silent);
    if (text !== told && !signal.aborted) onChange(silent);
    told = text;
    await pause(lookEveryMs, signal); // an aborted pause ends the loop by its condition
  }
}
