/** Runs a short program to its end and returns its output. */

import { spawn } from "node:child_process";
import type { Account } from "./child-process.ts";

export interface RunOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly account?: Account | undefined;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** The result of a program that ran to its end, or could not be started. */
export interface RunResult {
  /** The exit code; undefined if the program could not be started, was killed or exceeded its time limit. */
  readonly code: number | undefined;
  /** Standard output and error together, trimmed. */
  readonly output: string;
}

/** Never rejects: a program that cannot be started is a result as well. */
export function runProgram(
  command: string,
  args: readonly string[],
  options: RunOptions,
): Promise<RunResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      killSignal: "SIGKILL",
      cwd: options.cwd ?? "/",
      env: options.env ?? process.env,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      ...options.account,
    });
    // Node's own option `timeout` keeps its timer running if the program cannot be started, which keeps this process alive.
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs);
    const chunks: Buffer[] = [];
    const output = () => Buffer.concat(chunks).toString("utf8").trim();
    const finish = (result: RunResult) => {
      clearTimeout(timer);
      resolve(result);
    };
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.once("error", (error) => finish({ code: undefined, output: output() || error.message }));
    child.once("close", (code) => finish({ code: code ?? undefined, output: output() }));
  });
}
