/** The advantage algorithm of a run that names one of its user's (`algorithm.advantage.kind: module`). */

import { type CodeGate, ConfigError, type RunConfig } from "@hone/config";
import { describeError, InvalidInputError } from "@hone/core";
import { USER_ADVANTAGE_EXPORT, type UserAdvantage, UserAdvantageError } from "@hone/rl";
import type { Problem } from "../report/run-event.ts";

/** Key of the run file that names the module. */
const KEY = "algorithm.advantage.path";

/** @returns why a run's module cannot be used; empty where it can or none is named. Nothing of it is run. */
export async function userAdvantageProblems(
  { algorithm: { advantage } }: Pick<RunConfig, "algorithm">,
  gate: CodeGate,
): Promise<Problem[]> {
  if (advantage.kind !== "module") return [];
  try {
    await gate.module(advantage.path, KEY);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidInputError || error instanceof ConfigError)) throw error;
    const allowed = "a module below HONE_FILES, where the operator allows modules";
    return [{ key: KEY, valueJson: JSON.stringify(advantage.path), allowed, message: error.message }];
  }
}

/**
 * Loads the function; it runs in this process.
 * @returns undefined where the run names an algorithm of Hone's.
 * @throws {ConfigError | InvalidInputError} when modules are not allowed, or the file does not exist.
 * @throws {UserAdvantageError} when the file cannot be imported or exports no such function.
 */
export async function loadUserAdvantage(
  { algorithm: { advantage } }: Pick<RunConfig, "algorithm">,
  gate: CodeGate,
): Promise<UserAdvantage | undefined> {
  if (advantage.kind !== "module") return undefined;
  const module = await gate.module(advantage.path, KEY);
  let loaded: unknown;
  try {
    loaded = await module.load();
  } catch (cause) {
    throw new UserAdvantageError(`${advantage.path} cannot be loaded: ${describeError(cause)}`, { cause });
  }
  const found: unknown =
    typeof loaded === "object" && loaded !== null ? Reflect.get(loaded, USER_ADVANTAGE_EXPORT) : undefined;
  if (typeof found === "function") return found as UserAdvantage;
  throw new UserAdvantageError(`${advantage.path} must export a function ${USER_ADVANTAGE_EXPORT}`);
}
