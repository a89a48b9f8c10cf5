/** Signals and last-resort errors of a process. */

/** The part of `process` that a runner needs. */
export interface SignalSource {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

export type StopReason =
  | { readonly kind: "signal"; readonly signal: string }
  | { readonly kind: "uncaught"; readonly error: unknown };

/** Sent by supervisors and Kubernetes, and by Ctrl-C, which reaches every process of the terminal's group. */
const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;
const UNCAUGHT_EVENTS = ["uncaughtException", "unhandledRejection"] as const;

/**
 * Listens until it is disposed of, and calls `onStop` for every signal. Ctrl-C and the supervisor's own signal often come as
 * a pair, so a second one must not cut the drain short.
 */
export function listenForStop(source: SignalSource, onStop: (reason: StopReason) => void): Disposable {
  const listeners: Array<[string, (...args: unknown[]) => void]> = [
    ...STOP_SIGNALS.map((signal): [string, () => void] => [signal, () => onStop({ kind: "signal", signal })]),
    ...UNCAUGHT_EVENTS.map((event): [string, (error: unknown) => void] => [
      event,
      (error) => onStop({ kind: "uncaught", error }),
    ]),
  ];
  for (const [event, listener] of listeners) source.on(event, listener);
  return {
    [Symbol.dispose]() {
      for (const [event, listener] of listeners) source.off(event, listener);
    },
  };
}
