/**
 * Notices processes that run but do not answer, because they are stopped, hang or get no CPU time. They are reported and never
 * killed: a stopped process may continue, and killing it would lose work.
 */

import { pause } from "@hone/core";

/** With the two seconds that an answer may take, a silent process is noticed within five. */
const LOOK_EVERY_MS = 3_000;

/** Asks a process; false if it does not answer. */
export type Probe = () => Promise<boolean>;

export interface AnswerWatchOptions {
  /** The probes of the current processes, by name; called in every round, as processes are restarted. */
  readonly probes: () => Readonly<Record<string, Probe>>;
  /** Called after each change with the processes that do not answer, and since when in Unix milliseconds. */
  readonly onChange: (silent: Readonly<Record<string, number>>) => void;
  readonly signal: AbortSignal;
  /** @default 3_000 */
  readonly lookEveryMs?: number;
}

/** Watches until the signal aborts; resolves then. */
export async function watchAnswers(options: AnswerWatchOptions): Promise<void> {
  const { probes, onChange, signal, lookEveryMs = LOOK_EVERY_MS } = options;
  const lastAnswerMs = new Map<string, number>();
  let reported = "{}";
  while (!signal.aborted) {
    const startedMs = Date.now();
    const asked = await Promise.all(
      Object.entries(probes()).map(async ([name, probe]) => ({ name, isThere: await probe() })),
    );
    const silent: Record<string, number> = {};
    for (const { name, isThere } of asked) {
      // A process that has never answered counts as silent since it was first asked.
      if (isThere || !lastAnswerMs.has(name)) lastAnswerMs.set(name, isThere ? Date.now() : startedMs);
      if (!isThere) silent[name] = lastAnswerMs.get(name) ?? startedMs;
    }
    const text = JSON.stringify(silent);
    if (text !== reported && !signal.aborted) onChange(silent);
    reported = text;
    await pause(lookEveryMs, signal); // an aborted pause ends the loop by its condition
  }
}
