/**
 * Runs a program to measure as a child process; programs/round-loop.ts describes the protocol.
 *
 * Rounds are requested one at a time, so that the programs of a sitting can take turns. The program ends with its scope.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { deadline, TerminalError } from "@hone/core";

/** How to start a program. */
export interface ProgramOptions {
  /** Name of the program in errors. */
  readonly name: string;
  /** @default the Node.js of this process */
  readonly command?: string;
  readonly args: readonly string[];
  /** @default that of this process */
  readonly environment?: NodeJS.ProcessEnv;
  /** Time limit for the start, in which models are built and servers started. @default 120_000 */
  readonly startDeadlineMs?: number;
  /** @default 180_000 */
  readonly roundDeadlineMs?: number;
  /** Whether to stop the program and its children between rounds, because idle threads of some programs spin. */
  readonly standsStill?: boolean;
}

const START_DEADLINE_MS = 120_000;
const ROUND_DEADLINE_MS = 180_000;
const END_DEADLINE_MS = 10_000;
/** Signals that end this process and its programs, because a stopped program does not notice the end of its input. */
const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Characters of the program's error output in the message of a failure. */
const MAX_ERROR_TEXT = 2_000;

/** A measured program failed. */
export class ProgramError extends TerminalError {
  constructor(name: string, problem: string) {
    super("BENCH_PROGRAM", `${name} ${problem}`);
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
    // The listeners were removed, so this signal ends the process.
    process.kill(process.pid, signal);
  };

  private constructor(options: ProgramOptions) {
    this.#options = options;
    const child = spawn(options.command ?? process.execPath, options.args, {
      env: options.environment ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
      // In its own process group, so that its children can be ended with it.
      detached: true,
    });
    child.stderr.on("data", (chunk) => {
      this.#errorText = (this.#errorText + String(chunk)).slice(-MAX_ERROR_TEXT);
    });
    // Errors of writing to a program that has ended are ignored, as its missing answer is reported.
    child.stdin.on("error", () => undefined);
    for (const signal of ENDING_SIGNALS) process.once(signal, this.#onSignal);
    this.#child = child;
    this.#input = child.stdin;
    this.#interface = createInterface({ input: child.stdout });
    this.#lines = this.#interface[Symbol.asyncIterator]();
  }

  /** Starts the program and waits until it is ready. */
  static async start(options: ProgramOptions): Promise<MeasuredProgram> {
    const program = new MeasuredProgram(options);
    try {
      const ready = await program.#line("to be ready", options.startDeadlineMs ?? START_DEADLINE_MS);
      if (ready !== "ready")
        throw new ProgramError(options.name, `must print "ready" first, and printed ${ready}`);
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

  /** Runs one round. @returns the program's answer. */
  async round<Result>(word = "round"): Promise<Result> {
    this.#stand(false);
    this.#input.write(`${word}\n`);
    const line = await this.#line("its round", this.#options.roundDeadlineMs ?? ROUND_DEADLINE_MS);
    this.#stand(true);
    return JSON.parse(line) as Result;
  }

  /** Ends the program's input and waits until it and its children are gone. */
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

  /** Kills the process group, because a peer's children may live longer than the peer. */
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
    if (done === true) throw new ProgramError(name, `gave no answer: ${await this.#describeEnd()}`);
    return value;
  }
}
