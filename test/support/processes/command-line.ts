/** Runs the command line as a user does, with the test's own state folder. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { COMMAND_LINE } from "../stack.ts";

export interface CommandLineOptions {
  readonly stateFolder: string;
  /** The user's current folder. */
  readonly userFolder: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A running `hone ARGS` whose output is not a terminal. */
export class CommandLine {
  /** What was printed to stdout so far. */
  output = "";
  errors = "";
  /** The exit code; null if a signal ended the command. */
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcessWithoutNullStreams;

  constructor(args: readonly string[], { stateFolder, userFolder, env }: CommandLineOptions) {
    this.#child = spawn(process.execPath, [COMMAND_LINE, ...args], {
      env: { ...process.env, HONE_STATE_DIR: stateFolder, INIT_CWD: userFolder, NO_COLOR: "1", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdout.on("data", (data) => (this.output += String(data)));
    this.#child.stderr.on("data", (data) => (this.errors += String(data)));
    this.ended = new Promise((resolve) => this.#child.once("close", resolve));
  }

  /** Writes the whole input. */
  write(input: string): void {
    this.#child.stdin.end(input);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
