/**
 * One invocation of a command: where it prints, and how it is told to stop.
 *
 * I1: the first SIGINT, SIGTERM or SIGHUP aborts `signal`; the command then ends what it started, in order.
 * I2: another one, a while later, aborts `hurry`: what still drains gets a second. Ctrl-C reaches this process several
 *     times at once (from the terminal, and passed on by npm), so what comes close together counts once.
 * I3: the parent's death counts as SIGTERM where bootstrap.mjs is the parent: it passes on no SIGKILL.
 * I4: errors for people are printed without a stack, and become the exit code.
 */

import { describeError, HoneError } from "@hone/core";
import { findProject, type Project } from "./project.ts";
import { Terminal } from "./terminal.ts";

export interface Session {
  readonly terminal: Terminal;
  readonly project: Project;
  /** Aborts with an {@link Interrupted} (I1). */
  readonly signal: AbortSignal;
  readonly hurry: AbortSignal;
}

/** The reason of an aborted session. */
export class Interrupted extends HoneError {
  readonly signalName: NodeJS.Signals;

  constructor(signalName: NodeJS.Signals) {
    super("INTERRUPTED", `Interrupted by ${signalName}`);
    this.signalName = signalName;
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const ONE_KEYPRESS_MS = 1_000;
const PARENT_LOOK_MS = 500;
/** What shells report for a process that SIGINT ended: 128 + 2. */
const INTERRUPTED_EXIT_CODE = 130;
/** After a command is done nothing should keep the process; if something does, it is not waited for. */
const LINGER_MS = 2_000;
const PARENT_VARIABLE = "HONE_BOOTSTRAP_PID";

/**
 * Runs a command.
 * @param run gives the exit code.
 */
export async function runSession(run: (session: Session) => Promise<number>): Promise<void> {
  const stop = new AbortController();
  const hurry = new AbortController();
  let firstAt = 0;
  const onSignal = (name: NodeJS.Signals) => {
    if (!stop.signal.aborted) {
      firstAt = performance.now();
      stop.abort(new Interrupted(name)); // I1
    } else if (performance.now() - firstAt > ONE_KEYPRESS_MS) hurry.abort(); // I2
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  // A reader that went away (`hone status | head`) is no failure of the command.
  process.stdout.on("error", () => stop.abort(new Interrupted("SIGPIPE")));
  const parent = watchParent(() => onSignal("SIGTERM")); // I3
  const terminal = new Terminal();
  try {
    process.exitCode = await run({
      terminal,
      project: findProject(),
      signal: stop.signal,
      hurry: hurry.signal,
    });
  } catch (error) {
    terminal.live("");
    process.exitCode = report(error, stop.signal);
  } finally {
    clearInterval(parent);
    for (const name of SIGNALS) process.off(name, onSignal);
  }
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** I4 */
function report(error: unknown, signal: AbortSignal): number {
  if (signal.aborted && (error === signal.reason || error instanceof Interrupted))
    return INTERRUPTED_EXIT_CODE;
  const text =
    error instanceof HoneError ? describeError(error) : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  return 1;
}

/** I3 */
function watchParent(onGone: () => void): NodeJS.Timeout | undefined {
  const parent = process.ppid;
  if (process.env[PARENT_VARIABLE] !== String(parent)) return undefined;
  return setInterval(() => {
    if (process.ppid !== parent) onGone();
  }, PARENT_LOOK_MS).unref();
}
