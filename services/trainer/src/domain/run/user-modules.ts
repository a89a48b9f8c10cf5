/** The parts of its algorithm that a run takes from modules of its user (`kind: module` of advantage and loss). */

import { type CodeGate, ConfigError, type RunConfig } from "@hone/config";
import { describeError, InvalidInputError, type TerminalError } from "@hone/core";
import {
  type Expression,
  expressionOf,
  USER_ADVANTAGE_EXPORT,
  USER_LOSS_EXPORT,
  type UserAdvantage,
  UserAdvantageError,
  type UserLoss,
  UserLossError,
} from "@hone/rl";
import type { Problem } from "../report/run-event.ts";

/** What the modules of a run gave; a part is undefined where the run names one of Hone's. */
export interface UserAlgorithms {
  readonly advantage?: UserAdvantage | undefined;
  /** What the function of the user's made, once for the tenure. */
  readonly loss?: Expression | undefined;
}

type Algorithm = Pick<RunConfig, "algorithm">;

/** @returns why the modules of a run cannot be used; empty where they can or none is named. Nothing of them is run. */
export async function userModuleProblems({ algorithm }: Algorithm, gate: CodeGate): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const part of ["advantage", "loss"] as const) {
    const chosen = algorithm[part];
    if (chosen.kind !== "module") continue;
    try {
      await gate.module(chosen.path, keyOf(part));
    } catch (error) {
      if (!(error instanceof InvalidInputError || error instanceof ConfigError)) throw error;
      const allowed = "a module below HONE_FILES, where the operator allows modules";
      const valueJson = JSON.stringify(chosen.path);
      problems.push({ key: keyOf(part), valueJson, allowed, message: error.message });
    }
  }
  return problems;
}

/**
 * Loads the functions; they run in this process.
 * @throws {ConfigError | InvalidInputError} when modules are not allowed, or a file does not exist.
 * @throws {UserAdvantageError | UserLossError} when a file cannot be imported or exports no such function, or a loss is none.
 */
export async function loadUserModules({ algorithm }: Algorithm, gate: CodeGate): Promise<UserAlgorithms> {
  const { advantage, loss } = algorithm;
  return {
    advantage:
      advantage.kind === "module"
        ? ((await load(gate, advantage.path, "advantage")) as UserAdvantage)
        : undefined,
    loss:
      loss.kind === "module"
        ? expressionOf(loss, (await load(gate, loss.path, "loss")) as UserLoss)
        : undefined,
  };
}

const EXPORTS = { advantage: USER_ADVANTAGE_EXPORT, loss: USER_LOSS_EXPORT } as const;
const ERRORS = { advantage: UserAdvantageError, loss: UserLossError } as const;
type Part = keyof typeof EXPORTS;

/** The key of the run file that names a module. */
function keyOf(part: Part): string {
  return `algorithm.${part}.path`;
}

async function load(gate: CodeGate, file: string, part: Part): Promise<unknown> {
  const fail = (problem: string, cause?: unknown): TerminalError =>
    new ERRORS[part](`${file} ${problem}`, { cause });
  const module = await gate.module(file, keyOf(part));
  let loaded: unknown;
  try {
    loaded = await module.load();
  } catch (cause) {
    throw fail(`cannot be loaded: ${describeError(cause)}`, cause);
  }
  const found: unknown =
    typeof loaded === "object" && loaded !== null ? Reflect.get(loaded, EXPORTS[part]) : undefined;
  if (typeof found === "function") return found;
  throw fail(`must export a function ${EXPORTS[part]}`);
}
