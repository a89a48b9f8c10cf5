/**
 * Who does a piece of work: Hone or a peer, as a program, or the reason why it cannot.
 *
 * C1: whoever fails once is asked no more, and its figures are the reason; the others go on.
 */

import { existsSync } from "node:fs";
import path from "node:path";
import { describeError } from "@hone/core";
import { MeasuredProgram, type ProgramOptions } from "../measure/measured-program.ts";
import { REPOSITORY } from "../repository.ts";
import type { Figures } from "./comparison.ts";

/** Environments of the peers, as folders of the peers' folder. */
export type PeerEnvironment = "torch" | "vllm";

/** Compiling a model takes minutes, loading vLLM one. */
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

  /** Starts it; a failure is its reason. */
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

  /** Starts a peer's program of bench/peers where its environment is installed. */
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

  /** Undefined while nothing is wrong. */
  get reason(): string | undefined {
    return this.#reason === "" ? undefined : this.#reason;
  }

  /** 0 where it never started. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  /** Has the work done once. @returns what `work` gives; NaN where it cannot (C1). */
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

/** The line that names the error, which programs print last or nearly so; the whole goes to whoever waits. */
function reasonOf(name: string, error: unknown): string {
  const text = describeError(error);
  console.error(`  ${name} cannot run: ${text}`);
  const lines = text.trimEnd().split("\n");
  return `cannot run: ${lines.findLast((line) => /Error|error/.test(line))?.trim() ?? lines.at(-1)}`;
}
