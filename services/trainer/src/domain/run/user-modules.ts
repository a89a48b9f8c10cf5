/** The parts of its algorithm that a run takes from modules of its user (`kind: module` of advantage, loss and curricula). */

import { type CodeGate, ConfigError, curriculaOf, type RunConfig } from "@hone/config";
import { describeError, InvalidInputError, type TerminalError } from "@hone/core";
import {
  type Expression,
  expressionOf,
  USER_ADVANTAGE_EXPORT,
  USER_CURRICULUM_EXPORT,
  USER_LOSS_EXPORT,
  type UserAdvantage,
  UserAdvantageError,
  type UserCurriculum,
  UserCurriculumError,
  type UserLoss,
  UserLossError,
} from "@hone/rl";
import type { Problem } from "../report/run-event.ts";

/** What the modules of a run gave; a part is undefined where the run names one of Hone's. */
export interface UserAlgorithms {
  readonly advantage?: UserAdvantage | undefined;
  /** What the function of the user's made, once for the tenure. */
  readonly loss?: Expression | undefined;
  /** By the name of the part of the tasks. */
  readonly curricula?: ReadonlyMap<string, UserCurriculum>;
}

type Chosen = Pick<RunConfig, "algorithm" | "dataset">;

/** @returns why the modules of a run cannot be used; empty where they can or none is named. Nothing of them is run. */
export async function userModuleProblems(run: Chosen, gate: CodeGate): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const { key, path } of modulesOf(run)) {
    try {
      await gate.module(path, key);
    } catch (error) {
      if (!(error instanceof InvalidInputError || error instanceof ConfigError)) throw error;
      const allowed = "a module below HONE_FILES, where the operator allows modules";
      problems.push({ key, valueJson: JSON.stringify(path), allowed, message: error.message });
    }
  }
  return problems;
}

/**
 * Loads the functions; they run in this process.
 * @throws {ConfigError | InvalidInputError} when modules are not allowed, or a file does not exist.
 * @throws {UserAdvantageError | UserLossError | UserCurriculumError} when a file cannot be imported or exports no such
 *   function, or a loss is none.
 */
export async function loadUserModules(run: Chosen, gate: CodeGate): Promise<UserAlgorithms> {
  let advantage: UserAdvantage | undefined;
  let loss: Expression | undefined;
  const curricula = new Map<string, UserCurriculum>();
  for (const module of modulesOf(run)) {
    const loaded = await load(gate, module);
    if (module.kind === "advantage") advantage = loaded as UserAdvantage;
    else if (module.kind === "curriculum") curricula.set(module.part, loaded as UserCurriculum);
    else if (run.algorithm.loss.kind === "module")
      loss = expressionOf(run.algorithm.loss, loaded as UserLoss);
  }
  return { advantage, loss, curricula };
}

const EXPORTS = {
  advantage: USER_ADVANTAGE_EXPORT,
  loss: USER_LOSS_EXPORT,
  curriculum: USER_CURRICULUM_EXPORT,
} as const;
const ERRORS = {
  advantage: UserAdvantageError,
  loss: UserLossError,
  curriculum: UserCurriculumError,
} as const;

/** A module that a run names. */
interface NamedModule {
  readonly kind: keyof typeof EXPORTS;
  /** The key of the run file that names it. */
  readonly key: string;
  readonly path: string;
  /** The part of the tasks that a curriculum is for. */
  readonly part: string;
}

function modulesOf(run: Chosen): NamedModule[] {
  const ofAlgorithm = (["advantage", "loss"] as const).flatMap((kind) => {
    const chosen = run.algorithm[kind];
    return chosen.kind === "module"
      ? [{ kind, key: `algorithm.${kind}.path`, path: chosen.path, part: "" }]
      : [];
  });
  const curricula = curriculaOf(run).flatMap(({ part, key, curriculum }) =>
    curriculum.kind === "module"
      ? [{ kind: "curriculum" as const, key: `${key}.path`, path: curriculum.path, part }]
      : [],
  );
  return [...ofAlgorithm, ...curricula];
}

async function load(gate: CodeGate, { kind, key, path: file }: NamedModule): Promise<unknown> {
  const fail = (problem: string, cause?: unknown): TerminalError =>
    new ERRORS[kind](`${file} ${problem}`, { cause });
  const module = await gate.module(file, key);
  let loaded: unknown;
  try {
    loaded = await module.load();
  } catch (cause) {
    throw fail(`cannot be loaded: ${describeError(cause)}`, cause);
  }
  const found: unknown =
    typeof loaded === "object" && loaded !== null ? Reflect.get(loaded, EXPORTS[kind]) : undefined;
  if (typeof found === "function") return found;
  throw fail(`must export a function ${EXPORTS[kind]}`);
}
