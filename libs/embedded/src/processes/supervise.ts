/**
 * Keeps a child process running: when it ends without being stopped, it is started again after a growing pause.
 *
 * S1: a failure of the first start is thrown to the caller; only later starts are retried.
 * S2: a child that lived for `STEADY_MS` counts as healthy; only shorter lives make the pause grow.
 * S3: after `maxShortLives` short lives in a row, or an exit that a restart cannot help, it gives up, resolves `gaveUp`, and
 *     starts no further child.
 * S4: `stop` is idempotent and also stops a restart that has begun.
 */

import { delay, describeError } from "@hone/core";
import { StartError } from "../errors.ts";
import { type Child, type ChildExit, describeExit, logTail, type StopOptions } from "./child-process.ts";

export type SupervisedEvent =
  | { readonly kind: "started"; readonly pid: number; readonly restarts: number }
  | { readonly kind: "ended"; readonly reason: string; readonly restartInMs: number }
  | { readonly kind: "gave_up"; readonly error: StartError };

export interface SuperviseOptions<T extends Child> {
  readonly name: string;
  /** Starts the child and waits until it is ready. Called again for each restart. */
  start(signal: AbortSignal): Promise<T>;
  /** Whether an exit means that a restart cannot help, as with wrong settings. @default never */
  readonly isFatal?: (exit: ChildExit) => boolean;
  readonly onEvent?: (event: SupervisedEvent) => void;
  /** Ends the first start. */
  readonly signal?: AbortSignal | undefined;
  /** @default 200 */
  readonly minPauseMs?: number;
  /** @default 10 */
  readonly maxShortLives?: number;
}

export interface Supervised<T extends Child> extends AsyncDisposable {
  readonly name: string;
  /** The running child; undefined between two lives and after the end. */
  readonly current: T | undefined;
  /** How often it was started again. */
  readonly restarts: number;
  /** Resolves when the supervisor has given up (S3); never rejects, stays open after `stop`. */
  readonly gaveUp: Promise<StartError>;
  stop(options?: StopOptions): Promise<void>;
}

/** A service that lives this long has connected and worked. */
const STEADY_MS = 30_000;
const DEFAULT_MIN_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;
/** With the pauses above this takes about a minute; a problem that lasts longer needs a person. */
const DEFAULT_MAX_SHORT_LIVES = 10;

/** @throws what the first start throws (S1). */
export async function supervise<T extends Child>(options: SuperviseOptions<T>): Promise<Supervised<T>> {
  const { name, minPauseMs = DEFAULT_MIN_PAUSE_MS, maxShortLives = DEFAULT_MAX_SHORT_LIVES } = options;
  const tell = options.onEvent ?? (() => undefined);
  const stopping = new AbortController();
  const gaveUp = Promise.withResolvers<StartError>();
  let current: T | undefined = await options.start(
    AbortSignal.any([stopping.signal, ...(options.signal === undefined ? [] : [options.signal])]),
  );
  let restarts = 0;
  let stopOptions: StopOptions = {};
  tell({ kind: "started", pid: current.pid, restarts });
  const watching = watchOver();

  async function watchOver(): Promise<void> {
    let startedAt = performance.now();
    let shortLives = 0;
    let reason = "";
    while (true) {
      let isFatal = false;
      if (current !== undefined) {
        const { logFile } = current;
        const exit = await current.exited;
        current = undefined;
        isFatal = options.isFatal?.(exit) ?? false;
        reason = `${describeExit(exit)}\n${logTail(logFile)}`.trim();
      }
      if (stopping.signal.aborted) return;
      shortLives = performance.now() - startedAt >= STEADY_MS ? 1 : shortLives + 1; // S2
      if (isFatal || shortLives >= maxShortLives) {
        const lives = isFatal
          ? "a restart cannot mend this"
          : `it ended ${shortLives} times in a row within ${STEADY_MS} ms`;
        const error = new StartError(
          name,
          `Cannot keep ${name} running: ${lives}; its last end was ${reason}`,
          "",
        );
        tell({ kind: "gave_up", error });
        gaveUp.resolve(error);
        return; // S3
      }
      const restartInMs = Math.min(MAX_PAUSE_MS, minPauseMs * 2 ** (shortLives - 1));
      tell({ kind: "ended", reason, restartInMs });
      try {
        await delay(restartInMs, { signal: stopping.signal });
        startedAt = performance.now();
        const child = await options.start(stopping.signal);
        if (stopping.signal.aborted) {
          await child.stop(stopOptions); // S4
          return;
        }
        current = child;
        restarts++;
        tell({ kind: "started", pid: current.pid, restarts });
      } catch (error) {
        if (stopping.signal.aborted) return; // S4
        reason = describeError(error);
      }
    }
  }

  const stop = async (given: StopOptions = {}): Promise<void> => {
    stopOptions = given;
    stopping.abort();
    await current?.stop(stopOptions);
    await watching;
  };

  return {
    name,
    get current() {
      return current;
    },
    get restarts() {
      return restarts;
    },
    gaveUp: gaveUp.promise,
    stop,
    [Symbol.asyncDispose]: () => stop(),
  };
}
