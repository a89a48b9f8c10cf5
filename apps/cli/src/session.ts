/**
 * One invocation of a command: where it prints, and how it is stopped.
 *
 * I1: the first SIGINT, SIGTERM or SIGHUP aborts `signal`; the command then stops what it started, in order.
 * I2: a second signal, at least a second later, aborts `hurry`: services that still drain get one more second. Ctrl-C reaches
 *     this process several times at once (from the terminal, and passed on by npm), so signals close together count as one.
 * I3: if bootstrap.mjs is the parent, its death counts as SIGTERM, because it cannot pass on a SIGKILL.
 * I4: a HoneError is printed without its stack trace, any other error with it; both give exit code 1.
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

/** Why a session was aborted. */
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
/** When a command is done nothing should keep the process alive; if something does, it is ended after this time. */
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
  process.stdout.on("error", (error) => {
    if (isReaderGone(error)) stop.abort(new Interrupted("SIGPIPE"));
  });
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

/** Whether nobody reads what is printed any more (`hone status | head`), which is no failure of the command. */
export function isReaderGone(error: Error): boolean {
  return "code" in error && error.code === "EPIPE";
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
