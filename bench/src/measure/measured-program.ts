/**
 * A program that is measured, as a child process: see programs/round-loop.ts for what both sides say.
 *
 * Its rounds are asked for one at a time, so that programs of one sitting can take turns; it ends with its scope.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { deadline, TerminalError } from "@hone/core";

/** How to start one. */
export interface ProgramOptions {
  /** Shown in errors. */
  readonly name: string;
  /** @default this Node */
  readonly command?: string;
  readonly args: readonly string[];
  /** @default that of this process */
  readonly environment?: NodeJS.ProcessEnv;
  /** Until it is ready: models are built and servers started meanwhile. @default 120_000 */
  readonly startDeadlineMs?: number;
  /** @default 180_000 */
  readonly roundDeadlineMs?: number;
  /** Whether it is stopped, with everything that it started, while it has no round: idle threads of some still spin. */
  readonly standsStill?: boolean;
}

const START_DEADLINE_MS = 120_000;
const ROUND_DEADLINE_MS = 180_000;
const END_DEADLINE_MS = 10_000;
/** Whoever is ended by these takes its programs along: one that is stopped does not see that its input is over. */
const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Of what the program wrote on its error stream, in the message when it fails. */
const MAX_ERROR_TEXT = 2_000;

/** A measured program failed. */
export class ProgramError extends TerminalError {
  constructor(name: string, rule: string, current: string) {
    super("BENCH_PROGRAM", `Cannot measure ${name} as ${rule}: current value is ${current}`);
  }
}

export class MeasuredProgram implements AsyncDisposable {
  readonly #options: ProgramOptions;
  readonly #child: ChildProcess;
  readonly #input: NonNullable<ChildProcess["stdin"]>;
  readonly #interface: Interface;
  readonly #lines: AsyncIterator<string>;
  #errorText = "";
  readonly #onSignal = (signal: NodeJS.Signals) => {
    this.#endGroup();
    // Its listeners were for one signal each, so this one ends the process.
    process.kill(process.pid, signal);
  };

  private constructor(options: ProgramOptions) {
    this.#options = options;
    const child = spawn(options.command ?? process.execPath, options.args, {
      env: options.environment ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own, so that what it starts can be ended with it.
      detached: true,
    });
    child.stderr.on("data", (chunk) => {
      this.#errorText = (this.#errorText + String(chunk)).slice(-MAX_ERROR_TEXT);
    });
    // Writing to a program that is gone: the missing answer tells.
    child.stdin.on("error", () => undefined);
    for (const signal of ENDING_SIGNALS) process.once(signal, this.#onSignal);
    this.#child = child;
    this.#input = child.stdin;
    this.#interface = createInterface({ input: child.stdout });
    this.#lines = this.#interface[Symbol.asyncIterator]();
  }

  /** Starts it and waits until it says that it is ready. */
  static async start(options: ProgramOptions): Promise<MeasuredProgram> {
    const program = new MeasuredProgram(options);
    try {
      const ready = await program.#line("to be ready", options.startDeadlineMs ?? START_DEADLINE_MS);
      if (ready !== "ready") throw new ProgramError(options.name, `it says "ready" first`, ready);
      program.#stand(true);
      return program;
    } catch (error) {
      await program[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Runs one round. @returns what the program says of it. */
  async round<Result>(word = "round"): Promise<Result> {
    this.#stand(false);
    this.#input.write(`${word}\n`);
    const line = await this.#line("its round", this.#options.roundDeadlineMs ?? ROUND_DEADLINE_MS);
    this.#stand(true);
    return JSON.parse(line) as Result;
  }

  /** Ends its input and waits until it is gone, with everything that it started. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#interface.close();
    this.#stand(false);
    for (const signal of ENDING_SIGNALS) process.off(signal, this.#onSignal);
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit");
      this.#input.end();
      try {
        await deadline(`${this.#options.name} to end`, END_DEADLINE_MS, () => gone);
      } catch {
        this.#endGroup();
        await gone;
      }
    }
    this.#endGroup();
  }

  /** Its own processes too: a peer's may outlive it. */
  #endGroup(): void {
    this.#signalGroup("SIGKILL");
  }

  #stand(isStill: boolean): void {
    if (this.#options.standsStill) this.#signalGroup(isStill ? "SIGSTOP" : "SIGCONT");
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  async #describeEnd(): Promise<string> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) await once(this.#child, "exit");
    const ending = this.#child.signalCode ?? `exit code ${this.#child.exitCode}`;
    return [ending, this.#errorText.trim()].filter(Boolean).join(", ");
  }

  async #line(what: string, deadlineMs: number): Promise<string> {
    const { name } = this.#options;
    const { value, done } = await deadline(`${name} ${what}`, deadlineMs, () => this.#lines.next());
    if (done === true) throw new ProgramError(name, "it must answer", await this.#describeEnd());
    return value;
  }
}
