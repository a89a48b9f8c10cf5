/** The command line as a person starts it, in a state folder of the test's own. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { COMMAND_LINE } from "./stack.ts";

export interface CommandLineOptions {
  readonly stateFolder: string;
  /** Where the person stands. */
  readonly userFolder: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** `hone ARGS`, whose output nobody sees on a terminal. */
export class CommandLine {
  /** What it printed so far. */
  output = "";
  errors = "";
  /** Its exit code; null where a signal ended it. */
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

  /** All that it reads. */
  write(input: string): void {
    this.#child.stdin.end(input);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
