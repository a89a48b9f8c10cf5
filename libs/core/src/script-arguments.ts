/**
 * Arguments of the repository's programs (`npm run bench -- --quick`). A program declares them once; `--help` prints its
 * usage, and a wrong argument is answered by one sentence and the usage instead of a stack trace.
 */

import { type ParseArgsConfig, parseArgs } from "node:util";
import { InvalidInputError } from "./errors.ts";

/** The arguments that a program accepts. */
export interface ScriptArguments {
  /** What `--help` prints: a line on what the program does, then its options. */
  readonly usage: string;
  readonly options?: NonNullable<ParseArgsConfig["options"]>;
  /** Names of the positional arguments that must be given, such as `MODEL`. @default none */
  readonly positionals?: readonly string[];
  /** Whether further positional arguments may follow. @default false */
  readonly takesMore?: boolean;
}

/** Wrong arguments, or a request for help: print the message and nothing else. */
export class UsageError extends InvalidInputError {
  /** 0 if help was asked for, which belongs on standard output; 2 if the arguments are wrong. */
  readonly exitCode: 0 | 2;

  constructor(message: string, exitCode: 0 | 2) {
    super(message, { path: "", allowed: "the arguments that --help names" });
    this.exitCode = exitCode;
  }
}

/**
 * @returns what `parseArgs` of `node:util` returns for these options.
 * @throws {UsageError} for `--help`, and for arguments that the program does not accept.
 */
export function parseScriptArguments<const T extends ScriptArguments>(args: readonly string[], script: T) {
  const { usage, positionals: names = [], takesMore = false } = script;
  const options = { ...script.options, help: { type: "boolean", short: "h" } } as T["options"] & {
    help: { type: "boolean"; short: "h" };
  };
  const parsed = orUsage(usage, () =>
    parseArgs({ args: [...args], options, allowPositionals: names.length > 0 || takesMore }),
  );
  if ((parsed.values as { help?: boolean }).help === true) throw new UsageError(usage, 0);
  const { length } = parsed.positionals;
  if (length < names.length) throw wrong(usage, `${names[length]} is missing`);
  if (length > names.length && !takesMore)
    throw wrong(usage, `"${parsed.positionals[names.length]}" is not expected`);
  return parsed;
}

/** The process whose arguments are read and whose exit code is set. */
export type ScriptProcess = Pick<NodeJS.Process, "argv" | "exit" | "exitCode">;

/** The same as {@link parseScriptArguments}, but prints what is wrong and ends the process; for programs without clean-up. */
export function scriptArguments<const T extends ScriptArguments>(program: ScriptProcess, script: T) {
  try {
    return parseScriptArguments(program.argv.slice(2), script);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    printUsage(program, error);
    program.exit();
  }
}

/** Prints the message to standard output or standard error, and sets the exit code of the process. */
export function printUsage(program: ScriptProcess, error: UsageError): void {
  (error.exitCode === 0 ? console.log : console.error)(error.message);
  program.exitCode = error.exitCode;
}

/** Node's own message names the option; its advice about `--`, which does not help here, is removed. */
function orUsage<T>(usage: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw wrong(usage, error.message.split(". To specify")[0] ?? error.message);
  }
}

function wrong(usage: string, reason: string): UsageError {
  return new UsageError(`${reason}.\n\n${usage}`, 2);
}
