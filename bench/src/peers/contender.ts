/**
 * A contender does a piece of work: Hone's program or a peer's, or the reason why it cannot run.
 *
 * C1: a contender that fails once is not asked again, and has the reason instead of figures; the others continue.
 */

import { existsSync } from "node:fs";
import path from "node:path";
import { describeError } from "@hone/core";
import { MeasuredProgram, type ProgramOptions } from "../measure/measured-program.ts";
import { REPOSITORY } from "../repository.ts";
import type { Figures } from "./comparison.ts";

/** The peers' virtual environments, as names of folders in the peers' folder. */
export type PeerEnvironment = "torch" | "vllm";

/** Compiling a model takes minutes, and loading vLLM takes one. */
const START_DEADLINE_MS = 600_000;
const ROUND_DEADLINE_MS = 600_000;
export const NOT_INSTALLED = "not installed";

export class Contender implements AsyncDisposable {
  readonly name: string;
  readonly #program: MeasuredProgram | undefined;
  #reason: string;

  private constructor(name: string, program: MeasuredProgram | undefined, reason: string) {
    this.name = name;
    this.#program = program;
    this.#reason = reason;
  }

  /** Starts the program; a failure becomes the contender's reason. */
  static async start(options: ProgramOptions): Promise<Contender> {
    const usual = {
      startDeadlineMs: START_DEADLINE_MS,
      roundDeadlineMs: ROUND_DEADLINE_MS,
      standsStill: true,
    };
    try {
      return new Contender(options.name, await MeasuredProgram.start({ ...usual, ...options }), "");
    } catch (error) {
      return Contender.absent(options.name, reasonOf(options.name, error));
    }
  }

  /** Starts a peer's program in bench/peers if its environment is installed. */
  static async startPeer(
    name: string,
    peersFolder: string,
    environment: PeerEnvironment,
    [program, ...args]: readonly [program: string, ...args: string[]],
  ): Promise<Contender> {
    const command = path.join(peersFolder, environment, "bin", "python");
    if (!existsSync(command)) return Contender.absent(name, NOT_INSTALLED);
    return Contender.start({
      name,
      command,
      args: [path.join(REPOSITORY, "bench", "peers", program), ...args],
    });
  }

  static absent(name: string, reason: string): Contender {
    return new Contender(name, undefined, reason);
  }

  /** Why it cannot run; undefined if it can. */
  get reason(): string | undefined {
    return this.#reason === "" ? undefined : this.#reason;
  }

  /** The process id; 0 if it was never started. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  /** Does the work once. @returns the result of `work`; NaN if it failed (C1). */
  async measure(work: (program: MeasuredProgram) => Promise<number>): Promise<number> {
    if (this.#program === undefined || this.#reason !== "") return Number.NaN;
    try {
      return await work(this.#program);
    } catch (error) {
      this.#reason = reasonOf(this.name, error);
      return Number.NaN;
    }
  }

  figures(values: readonly number[]): Figures {
    return this.#reason === "" ? { kind: "measured", values } : { kind: "missing", reason: this.#reason };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]();
  }
}

/** The line of an error's text that names it, which is among the last; the whole text is printed. */
function reasonOf(name: string, error: unknown): string {
  const text = describeError(error);
  console.error(`  ${name} cannot run: ${text}`);
  const lines = text.trimEnd().split("\n");
  return `cannot run: ${lines.findLast((line) => /Error|error/.test(line))?.trim() ?? lines.at(-1)}`;
}
